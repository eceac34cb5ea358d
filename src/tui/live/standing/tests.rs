//! Six states of a machine, each in its sentence.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::tui::live::{
    model::{Gauge, Run, Update, What},
    state::State,
};

const SECOND: Ns = 1_000_000_000;

struct Script(State, Ns);

impl Script {
    fn look(&mut self, gauges: Vec<(Group, &str, &str, Reading<f64>)>) {
        self.1 += SECOND;
        let gauge = |(group, name, unit, value): (Group, &str, &str, Reading<f64>)| Gauge {
            group,
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
        };
        self.0.take(Update { at: self.1, what: What::Gauges(gauges.into_iter().map(gauge).collect()) });
    }

    fn said(&self) -> (String, bool) {
        let run = Run::default();
        let event = of(&Moment { state: &self.0, run: &run, at: Ns::MAX, step: None }).unwrap();
        assert!(event.zh.ends_with('。') && !event.zh.contains("the "), "{}", event.zh);
        (event.en, event.warns)
    }
}

type Look = Vec<(Group, &'static str, &'static str, Reading<f64>)>;

fn serving(running: f64, waiting: f64, cache: f64, preempted: f64) -> Look {
    let of = |name, unit, value| (Group::Server(String::new()), name, unit, Reading::Value(value));
    vec![
        of(PAGE, "ns", 1e6),
        of("requests_running", "", running),
        of("requests_waiting", "", waiting),
        of("kv_cache_use", "share", cache),
        of("preemptions", "1/s", preempted),
    ]
}

/// A device: utilisation, temperature, clock.
fn device(at: usize, busy: f64, heat: f64, clock: f64) -> Look {
    let of =
        |name, unit, value| (Group::Device(format!("nvidia-smi {at:>2}  H100")), name, unit, Reading::Value(value));
    vec![of("utilisation", "%", busy), of("temperature", "°C", heat), of("clock", "MHz", clock)]
}

#[test]
fn a_full_cache_says_since_when_and_that_the_load_limits() {
    let mut script = Script(State::default(), 0);
    script.look(serving(10.0, 0.0, 0.5, 0.0));
    (0..13).for_each(|n| script.look(serving(10.0, f64::from(n) * 0.3, 0.995, if n % 5 == 4 { 1.0 } else { 0.0 })));
    let sentence = "KV cache full for 12 s, 2 preemptions, the queue grows by 0.3/s: limited by load.";
    assert_eq!(script.said(), (sentence.to_owned(), true));
}

#[test]
fn a_queue_that_grows_is_more_load_than_is_served() {
    let mut script = Script(State::default(), 0);
    (0..10).for_each(|n| script.look(serving(10.0, f64::from(n), 0.4, 0.0)));
    let sentence =
        "9 requests wait, and the queue grows by 1.0/s, with 40 % of the KV cache in use: more load than is served.";
    assert_eq!(script.said(), (sentence.replace("40 %", &units::whole_share(0.4)), true));
}

#[test]
fn nothing_to_do_is_idle() {
    let mut script = Script(State::default(), 0);
    script.look([serving(0.0, 0.0, 0.0, 0.0), device(0, 0.0, 35.0, 345.0)].concat());
    assert_eq!(script.said(), ("Idle: no request runs.".to_owned(), false));
    let mut script = Script(State::default(), 0);
    script.look([device(0, 0.0, 35.0, 345.0), device(1, 1.0, 35.0, 345.0)].concat());
    assert_eq!(script.said(), ("Idle: no device is above 5 %.".to_owned(), false));
}

#[test]
fn a_hot_device_that_is_slower_than_the_others_is_throttled_without_its_word() {
    let mut script = Script(State::default(), 0);
    script.look(
        (0..8)
            .flat_map(|at| if at == 3 { device(3, 99.0, 89.0, 1155.0) } else { device(at, 97.0, 64.0, 1755.0) })
            .collect(),
    );
    let sentence = "nvidia-smi 3 is throttled by heat: 89 °C, 1155 MHz, the others 1755 MHz.";
    assert_eq!(script.said(), (sentence.to_owned(), true));
    // By its own word, however warm it is.
    let mut script = Script(State::default(), 0);
    let mut look = device(0, 99.0, 60.0, 1700.0);
    look.push((Group::Device("nvidia-smi  0  H100".to_owned()), "throttle_power", "", Reading::Value(1.0)));
    script.look(look);
    assert_eq!(script.said(), ("nvidia-smi 0 is throttled by its power limit: 60 °C, 1700 MHz.".to_owned(), true));
}

#[test]
fn one_device_that_idles_beside_busy_ones_is_named() {
    let mut script = Script(State::default(), 0);
    script.look((0..8).flat_map(|at| device(at, if at == 5 { 0.0 } else { 97.0 }, 60.0, 1755.0)).collect());
    let sentence = "1 of 8 devices is idle (nvidia-smi 5) while the others are at 97 %.";
    assert_eq!(script.said(), (sentence.to_owned(), true));
}

#[test]
fn a_server_that_is_gone_is_said_first_with_its_reason() {
    let mut script = Script(State::default(), 0);
    script.look(serving(10.0, 50.0, 1.0, 5.0));
    for _ in 0..7 {
        let gone = Reading::Unavailable("connection refused".to_owned());
        script.look(vec![(Group::Server(String::new()), PAGE, "ns", gone)]);
    }
    assert_eq!(script.said(), ("The server has not answered for 7 s: connection refused.".to_owned(), true));
}

#[test]
fn what_runs_without_a_limit_is_said_in_figures() {
    let mut script = Script(State::default(), 0);
    script.look([serving(12.0, 0.0, 0.43, 0.0), device(0, 93.0, 60.0, 1700.0)].concat());
    let (said, warns) = script.said();
    assert!(
        said.starts_with("12 requests run and 0 wait, KV cache 43")
            && said.ends_with("devices at 93 %. Nothing limits."),
        "{said}"
    );
    assert!(!warns);
    let run = Run::default();
    let state = State::default();
    assert_eq!(of(&Moment { state: &state, run: &run, at: Ns::MAX, step: None }), None);
}
