//! The dashboard as people see it: whole screens of a fixed run, and what keys do to them.

use std::collections::VecDeque;

use diagnosis::i18n::{Lang, Text};
use model::{Ns, Reading};
use ratatui::{buffer::Buffer, layout::Rect, style::Color};
use report::text::acts;
use stratoscope::tui::{
    Face, Keymap, Settings,
    action::{Action, Scope},
    app::Request,
    face::Tick,
    key::Key,
    live::{Dashboard, Event, Gauge, Group, Op, Phase, Run, Source, Step, Update, What},
    text,
    theme::Depth,
    view::Point,
};

/// Updates that were made before.
struct Fixed(VecDeque<Update>);

impl Source for Fixed {
    fn poll(&mut self, give: &mut dyn FnMut(Update)) {
        self.0.drain(..).for_each(give);
    }

    fn now(&self) -> Ns {
        2_000_000_000
    }

    fn lost(&self) -> u64 {
        3
    }
}

fn gauge(group: &Group, name: &str, unit: &str, value: Reading<f64>) -> Gauge {
    Gauge { group: group.clone(), name: name.into(), unit: unit.into(), value }
}

/// Two ranks, of which the second is late; steps 20 to 22 were dropped, and one step is slow.
fn updates(ranks: usize) -> VecDeque<Update> {
    let mut out = VecDeque::new();
    let mut tell = |at, what| out.push_back(Update { at, what });
    tell(0, What::Phase(Phase::Preparing));
    tell(5, What::Names(["attention", "down_proj\u{1b}[2J", "all_reduce"].map(str::to_owned).to_vec()));
    tell(6, What::Phase(Phase::Running));
    let said = Event { en: "weights are ready".into(), zh: "权重就绪".into(), warns: false };
    tell(400_000_000, What::Event(said));
    let device = Group::Device("CPU".into());
    for number in (0..60u32).filter(|number| !(20..23).contains(number)) {
        let at = 400_000_000 + Ns::from(number) * 30_000_000;
        for rank in 0..ranks {
            let ns = if number == 41 { 90_000_000 } else { 28_000_000 + Ns::from(number % 5) * 400_000 };
            let comm = if ranks == 1 { 0 } else { [6_000_000, 1_000_000][rank % 2] };
            let compute = 20_000_000 - comm;
            let ops = vec![
                Op { name: 0, count: 24, ns: compute / 4 },
                Op { name: 1, count: 24, ns: compute * 3 / 4 },
                Op { name: 2, count: 48, ns: comm },
            ];
            let layers = Reading::Value([compute, ns - compute - comm, comm, 0]);
            tell(at, What::Step(Step { rank, number, ns, layers, ops }));
        }
        let busy = (number % 3 != 1).then_some(f64::from(number % 7) / 10.0);
        let busy = busy.map_or_else(|| Reading::Unavailable("no look".into()), Reading::Value);
        tell(
            at,
            What::Gauges(vec![
                gauge(&device, "cpu_busy", "", busy),
                gauge(&device, "cpu_power", "W", Reading::Unavailable("/sys/class/powercap: no such file".into())),
                gauge(&Group::Process, "memory_resident", "B", Reading::Value(1.5e9)),
                gauge(&Group::Watching, "dashboard", "share", Reading::Value(0.004)),
            ]),
        );
    }
    out
}

fn settings() -> Settings {
    Settings {
        lang: Lang::En,
        theme: "dark".into(),
        depth: Depth::True,
        ascii: false,
        mouse: true,
        keymap: Keymap::load(None).unwrap(),
        start: Default::default(),
    }
}

fn run(ranks: usize) -> Run {
    Run {
        title: "strato run · tiny".into(),
        facts: vec![(Text::new("graph mode", "图模式"), "eager".into())],
        ranks,
        steps: 64,
        batch: 2,
        prompt: 16,
        kv_bytes: 24_576,
        output: None,
    }
}

fn dashboard(ranks: usize, settings: Settings) -> Dashboard<Fixed> {
    let mut dashboard = Dashboard::new(Fixed(updates(ranks)), run(ranks), settings);
    assert_eq!(dashboard.tick(), Tick::New);
    assert_eq!(dashboard.tick(), Tick::Same);
    dashboard
}

fn buffer(dashboard: &mut Dashboard<Fixed>, width: u16, height: u16) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    dashboard.draw(&mut buf);
    buf
}

fn screen(dashboard: &mut Dashboard<Fixed>, width: u16, height: u16) -> String {
    let buf = buffer(dashboard, width, height);
    text::rows(&buf, buf.area).join("\n")
}

fn press(dashboard: &mut Dashboard<Fixed>, keys: &str) -> Option<Request> {
    keys.split_whitespace().map(|name| dashboard.key(Key::parse(name).unwrap())).last().flatten()
}

#[test]
fn the_dashboard_at_the_sizes_people_have() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let mut two = dashboard(2, settings());
        insta::assert_snapshot!(format!("live_{width}x{height}"), screen(&mut two, width, height));
    }
    let mut one = dashboard(1, settings());
    insta::assert_snapshot!("live_one_rank", screen(&mut one, 80, 24));
    let mut zh = dashboard(2, Settings { lang: Lang::Zh, ..settings() });
    insta::assert_snapshot!("live_zh", screen(&mut zh, 80, 24));
    insta::assert_snapshot!("live_zh_120x40", screen(&mut zh, 120, 40));
    insta::assert_snapshot!("live_zh_200x60", screen(&mut zh, 200, 60));
}

#[test]
fn without_colour_and_in_ascii_nothing_is_lost() {
    let mut mono = dashboard(2, Settings { depth: Depth::Mono, ..settings() });
    let buf = buffer(&mut mono, 80, 24);
    assert!(buf.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    insta::assert_snapshot!("live_mono", screen(&mut mono, 80, 24));
    let mut ascii = dashboard(2, Settings { ascii: true, ..settings() });
    let shown = screen(&mut ascii, 120, 40);
    insta::assert_snapshot!("live_ascii", shown);
    let beyond: Vec<char> = shown.chars().filter(|c| !c.is_ascii()).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
}

#[test]
fn what_is_absent_late_or_lost_is_said() {
    let shown = screen(&mut dashboard(2, settings()), 120, 40);
    for said in ["no such file", "updates dropped: 3", "late", "step 41 took", "·", "40 of 80"] {
        let said = if said == "40 of 80" { "75 of 80" } else { said };
        assert!(shown.contains(said), "{said} in\n{shown}");
    }
    assert!(!shown.contains('\u{1b}') && shown.contains("down_proj"), "{shown}");
    let late = shown.lines().find(|line| line.contains("late")).unwrap();
    assert!(late.contains("rank 1"), "{late}");
}

#[test]
fn a_person_freezes_and_goes_back_and_on() {
    let mut live = dashboard(1, settings());
    assert!(screen(&mut live, 120, 40).contains("59/64"));
    press(&mut live, "space");
    assert!(screen(&mut live, 120, 40).contains("frozen at 2.0 s"));
    press(&mut live, ", ,");
    let back = screen(&mut live, 120, 40);
    assert!(back.contains("shown: step"), "{back}");
    press(&mut live, "{");
    let first = screen(&mut live, 120, 40);
    assert!(first.contains("shown: step 0") && !first.contains("step 41 took"), "{first}");
    press(&mut live, ".");
    assert!(screen(&mut live, 120, 40).contains("shown: step 1"));
    press(&mut live, "esc");
    assert!(!screen(&mut live, 120, 40).contains("shown: step"));
    assert_eq!(press(&mut live, "o"), None, "there is no capture yet");
    assert_eq!(press(&mut live, "q"), Some(Request::Quit));
    assert!(matches!(press(&mut live, "e"), Some(Request::Save(exports)) if exports[0].text.contains("tokens/s")));
}

/// Keys, palette and mouse lead to the same, for everything that a dashboard can do.
#[test]
fn every_action_of_the_dashboard_is_reached_by_key_by_palette_and_by_mouse() {
    let keymap = Keymap::load(None).unwrap();
    let over = || {
        let mut updates = updates(2);
        updates.push_back(Update { at: 1_900_000_000, what: What::Phase(Phase::Over) });
        let mut live = Dashboard::new(Fixed(updates), run(2), settings());
        live.tick();
        buffer(&mut live, 100, 30);
        press(&mut live, ", ,");
        buffer(&mut live, 100, 30);
        live
    };
    let after = |mut live: Dashboard<Fixed>, request: Option<Request>| (request, screen(&mut live, 100, 30));
    let moves = Action::ALL.iter().filter(|action| action.scope() == Scope::Live);
    for action in moves.chain(&[Action::Quit, Action::Help, Action::CycleTheme, Action::Export, Action::Back]) {
        let mut straight = over();
        let request = straight.act(*action);
        let expected = after(straight, request);
        assert!(!expected.1.contains("means nothing here now"), "{}", action.id());
        for key in keymap.keys(*action) {
            let mut live = over();
            let request = live.key(*key);
            assert_eq!(after(live, request), expected, "{} by {key}", action.id());
        }
        let mut live = over();
        press(&mut live, ":");
        action.id().chars().for_each(|letter| drop(live.key(Key::parse(&letter.to_string()).unwrap())));
        let request = press(&mut live, "enter");
        assert_eq!(after(live, request), expected, "{} by palette", action.id());
        let mut live = over();
        let shown: Vec<String> = screen(&mut live, 100, 30).lines().map(str::to_owned).collect();
        let column = |row: &str, text: &str| Some(row[..row.find(text)?].chars().count() as u16);
        live.point(Point::Click(column(&shown[29], ": commands").unwrap(), 29));
        let entry = (0..Action::ALL.len()).find_map(|_| {
            let rows: Vec<String> = screen(&mut live, 100, 30).lines().map(str::to_owned).collect();
            let found = rows.iter().zip(0u16..).find_map(|(row, y)| {
                let inside = row.split('│').nth(1)?;
                let is_entry = inside.chars().skip(19).collect::<String>().trim() == action.text().en;
                is_entry.then(|| (column(row, action.text().en).unwrap(), y))
            });
            if found.is_none() {
                live.point(Point::Wheel(50, 15, false));
            }
            found
        });
        let (x, y) = entry.unwrap_or_else(|| panic!("{} is not in the palette", action.id()));
        let request = live.point(Point::Click(x, y));
        assert_eq!(after(live, request), expected, "{} by mouse", action.id());
    }
}

/// Names, reasons, units and events that were made to do harm.
#[test]
fn hostile_texts_act_nowhere_on_the_dashboard() {
    let hostile = format!(
        "\u{1b}[2J\u{1b}]52;c;AAAA\u{7}\u{202e}evil\u{2066}\u{200b}\u{feff}\r\n\t\u{9b}e{}核ｶﾞ👨\u{200d}👩{}",
        "\u{301}".repeat(4000),
        "A".repeat(1 << 20)
    );
    for lang in [Lang::En, Lang::Zh] {
        let mut updates = updates(2);
        let mut tell = |what| updates.push_back(Update { at: 1_900_000_000, what });
        tell(What::Names(vec![hostile.clone(); 3]));
        tell(What::Event(Event { en: hostile.clone(), zh: hostile.clone(), warns: true }));
        let groups = [Group::Server(hostile.clone()), Group::Device(hostile.clone()), Group::Host];
        for group in &groups {
            tell(What::Gauges(vec![
                gauge(group, &hostile, &hostile, Reading::Value(1.5)),
                gauge(group, "x", "W", Reading::Unavailable(hostile.clone())),
                gauge(group, "y", "W", Reading::Unavailable(format!("{}: no such file", &hostile[..40]))),
            ]));
        }
        let layers = Reading::Unavailable(hostile.clone());
        for number in 60..62 {
            tell(What::Step(Step { rank: 0, number, ns: 5, layers: layers.clone(), ops: Vec::new() }));
        }
        let facts = vec![(Text::new("graph mode", "图模式"), hostile.clone())];
        let run = Run { title: hostile.clone(), facts, output: Some(hostile.clone()), ..run(2) };
        for (width, height) in [(80, 24), (120, 40), (200, 60)] {
            let mut live = Dashboard::new(Fixed(updates.clone()), run.clone(), Settings { lang, ..settings() });
            live.tick();
            for keys in ["", "G", "space", "{"] {
                press(&mut live, keys);
                let buf = buffer(&mut live, width, height);
                for cell in &buf.content {
                    assert!(!cell.symbol().chars().any(acts) && cell.symbol().len() <= 24, "{:?}", cell.symbol());
                }
            }
            let Some(Request::Save(exports)) = press(&mut live, "e") else { panic!("nothing was saved") };
            assert!(exports.iter().all(|e| !e.text.chars().any(|c| acts(c) && c != '\n')));
        }
    }
}

#[test]
fn reasons_are_said_in_the_language_of_the_dashboard() {
    let mut updates = updates(1);
    let why = "the page holds no vllm:x_total".to_owned();
    let gauges = vec![gauge(&Group::Server(String::new()), "preemptions", "1/s", Reading::Unavailable(why))];
    updates.push_back(Update { at: 1_900_000_000, what: What::Gauges(gauges) });
    let layers = Reading::Unavailable("the record is full: 35 operators of the step are missing".into());
    for number in 60..100 {
        let step = Step { rank: 0, number, ns: 5, layers: layers.clone(), ops: Vec::new() };
        updates.push_back(Update { at: 1_900_000_000, what: What::Step(step) });
    }
    for (lang, said) in [
        (Lang::En, ["the record is full: 35 operators", "the page holds no vllm:x_total"]),
        (Lang::Zh, ["记录已满：该步缺少 35 个算子", "页面中没有 vllm:x_total"]),
    ] {
        let mut live = Dashboard::new(Fixed(updates.clone()), run(1), Settings { lang, ..settings() });
        live.tick();
        let shown = screen(&mut live, 160, 40);
        for said in said {
            assert!(shown.contains(said), "{said} in\n{shown}");
        }
    }
}

#[test]
fn no_small_size_harms_the_dashboard() {
    let mut live = dashboard(2, settings());
    for keys in ["esc", "G", "space", "{", "?", "esc :", "esc /"] {
        press(&mut live, keys);
        for height in 0..=8 {
            for width in 0..=20 {
                buffer(&mut live, width, height);
            }
        }
        press(&mut live, "e");
    }
    press(&mut live, "esc");
    assert_eq!(screen(&mut live, 19, 3), "19x3 < 20x3\n\n");
}

#[test]
fn no_size_does_harm() {
    let mut live = dashboard(2, settings());
    for (width, height) in
        [(0, 0), (1, 1), (19, 3), (20, 3), (21, 4), (40, 6), (300, 3), (20, 90), (76, 12), (400, 100)]
    {
        for keys in ["G", "space", "{", "esc"] {
            press(&mut live, keys);
            buffer(&mut live, width, height);
        }
    }
}
