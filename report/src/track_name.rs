//! What the tracks of a trace are called.

use model::{TrackKey, TrackKind};

use diagnosis::i18n::Text;

/// What a track is, before its number or name.
pub fn kind(key: &TrackKey) -> Text {
    match key.kind {
        TrackKind::HostThread => Text::new("thread", "线程"),
        TrackKind::DeviceQueue => Text::new("stream", "流"),
        TrackKind::DeviceAnnotation => Text::new("ranges on stream", "流上区间"),
        TrackKind::DeviceSync if !has_number(key) => Text::new("waits on all streams", "所有流上等待"),
        TrackKind::DeviceSync => Text::new("waits on stream", "流上等待"),
        TrackKind::Global => Text::new("capture", "采集"),
    }
}

/// Whether its number tells it from others. A wait for a whole context is recorded on stream -1 (`CUPTI_SYNCHRONIZATION_INVALID_VALUE`
/// of CUPTI's activity records, as Kineto writes it).
pub fn has_number(key: &TrackKey) -> bool {
    match key.kind {
        TrackKind::Global => false,
        TrackKind::DeviceSync => key.id >= 0,
        TrackKind::HostThread | TrackKind::DeviceQueue | TrackKind::DeviceAnnotation => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::i18n::Lang;

    #[test]
    fn a_wait_for_a_whole_context_is_on_no_stream_of_its_own() {
        let key = |id| TrackKey {
            process: model::ProcessId(0),
            kind: TrackKind::DeviceSync,
            device: Some(0),
            context: None,
            id,
        };
        assert_eq!((kind(&key(7)).get(Lang::En), has_number(&key(7))), ("waits on stream", true));
        assert_eq!((kind(&key(-1)).get(Lang::En), has_number(&key(-1))), ("waits on all streams", false));
    }
}
