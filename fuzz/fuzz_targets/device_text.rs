//! Any text as what every device tool prints: no panic, no hang, and no value that is not finite.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for tool in parsers::device_text::REGISTRY {
        let readout = (tool.read)(&text);
        let mut values = readout.devices.iter().flat_map(|d| &d.readings).filter_map(|(_, r)| r.value());
        assert!(values.all(|value| value.is_finite()));
    }
});
