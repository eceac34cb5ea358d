//! What is drawn of scripted captures.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::tui::{
    Opened,
    export::picture::{of_capture, of_step},
};
use diagnosis::{analysis::script::Script, platform::Packs};
use report::svg;

fn opened(script: Script) -> Opened {
    let session = session::Session::of(vec![script.builder.finish()], Packs::embedded().unwrap());
    Opened::new(session.examine(&Default::default()).unwrap().diagnose().unwrap().captures)
}

/// Launches of one kernel each, every 100 ns.
fn launches(count: i64) -> Opened {
    let mut script = Script::default();
    for i in 0..count {
        script.launch((i * 100, i * 100 + 20), "gemm<a>", (i * 100 + 40, i * 100 + 90));
    }
    opened(script)
}

fn lane<'a>(drawn: &'a Timeline, label: &str) -> &'a Drawn {
    drawn.lanes.iter().find(|lane| lane.label == label).unwrap()
}

#[test]
fn where_there_is_room_every_slice_is_a_mark_with_its_launch() {
    let opened = launches(50);
    let drawn = of_capture(&opened.look(0).unwrap(), Lang::En).unwrap();
    assert_eq!((&drawn.held, drawn.column, drawn.left_out), (&Held::Whole, None, 0));
    let stream = lane(&drawn, "stream 7");
    assert_eq!(stream.marks.len(), 50);
    for mark in &stream.marks {
        let (lane, launch) = mark.launch.unwrap();
        assert_eq!(drawn.lanes[lane].marks[launch].span.start, mark.span.start - 40);
        assert_eq!((mark.count, mark.span.len()), (1, 50));
    }
    assert!(drawn.window.start <= drawn.focus.start && drawn.focus.end <= drawn.window.end);
}

#[test]
fn where_there_is_none_columns_stand_for_all_slices_and_their_time() {
    let count = 3 * MOST as i64;
    let opened = launches(count);
    let look = opened.look(0).unwrap();
    let all: Vec<usize> = (0..look.lanes.lanes.len()).collect();
    let drawn = of_lanes(&look, &all, look.lanes.extent.unwrap(), Lang::En);
    assert!(drawn.column.is_some() && drawn.marks() <= MOST, "{}", drawn.marks());
    assert!(drawn.about(Lang::En).contains("too many slices") && drawn.about(Lang::Zh).contains("切片过多"));
    let stream = lane(&drawn, "stream 7");
    assert_eq!(stream.marks.iter().map(|mark| mark.busy).sum::<i64>(), count * 50);
    assert!(stream.marks.iter().map(|mark| i64::from(mark.count)).sum::<i64>() >= count);
    assert!(stream.marks.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
}

proptest::proptest! {
    /// Whatever the columns cut, no nanosecond is told twice and none is lost.
    #[test]
    fn columns_tell_the_time_of_the_lane(raw in proptest::collection::vec((0i64..400, 0i64..900), 1..80), width in 1u16..40) {
        let mut script = Script::default();
        let mut at = 0;
        for (gap, len) in &raw {
            let start = at + gap;
            at = start + len;
            script.launch((start, start + 1), "gemm", (start, at));
        }
        let opened = opened(script);
        let look = opened.look(0).unwrap();
        let stream = look.lanes.lanes.iter().find(|lane| label(lane, Lang::En) == "stream 7").unwrap();
        let marks = condense(&look, stream, stream.slices().unwrap(), (Span::new(0, at.max(1)), width), &mut Names::default());
        proptest::prop_assert_eq!(marks.iter().map(|mark| mark.busy).sum::<i64>(), raw.iter().map(|(_, len)| len).sum::<i64>());
        proptest::prop_assert!(marks.iter().map(|mark| mark.count as usize).sum::<usize>() >= raw.len());
        for pair in marks.windows(2) {
            proptest::prop_assert!(pair[0].span.end <= pair[1].span.start, "{:?}", pair);
        }
        proptest::prop_assert!(marks.iter().all(|mark| 0 <= mark.busy && mark.busy <= mark.span.len()));
    }
}

#[test]
fn short_lanes_leave_their_room_to_the_others() {
    assert_eq!(share(vec![10, 20, 30], MOST), usize::MAX);
    assert_eq!(share(vec![10, MOST, MOST], MOST), (MOST - 10) / 2);
    assert_eq!(share(vec![], MOST), usize::MAX);
}

#[test]
fn a_picture_is_sound_xml_in_both_languages() {
    let opened = launches(12);
    let look = opened.look(0).unwrap();
    for (lang, word) in [(Lang::En, "stream 7"), (Lang::Zh, "流 7")] {
        let drawn = of_step(&look, lang).unwrap();
        let picture = svg::render(&drawn, lang);
        assert!(picture.contains(word) && picture.contains("gemm&lt;a&gt;"), "{picture}");
        for tag in ["svg", "text", "title", "style"] {
            assert_eq!(
                picture.matches(&format!("<{tag}")).count(),
                picture.matches(&format!("</{tag}>")).count(),
                "{tag}"
            );
        }
    }
}
