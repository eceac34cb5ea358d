//! The dashboard: it takes updates in, freezes and goes back in the history of steps, and lays the panels out for the size of
//! the screen.

use model::Ns;
use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    model::{Phase, Run, Source},
    moment::Moment,
    panel::{self, Scene},
    state::{State, bounded},
};
use crate::tui::{
    action::{Action, Scope},
    app::{Request, Settings},
    chrome::{Asked, COMMON, Chrome},
    export::{self, Export},
    face::{Face, Tick},
    glyph,
    key::Key,
    text,
    theme::Role,
    view::Point,
    widget::{
        prose::{self, Line},
        rows::Rows,
    },
};
use diagnosis::i18n::{Lang, Text};
use report::units;

/// Width from which two columns stand beside each other.
const BESIDE: u16 = 76;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    /// Whatever is newest.
    #[default]
    Newest,
    /// What was known at this time.
    Frozen(Ns),
    /// What was known when a step was over: its number and its time.
    Step(u32, Ns),
}

/// The dashboard of a source.
pub struct Dashboard<S> {
    chrome: Chrome,
    source: S,
    run: Run,
    state: State,
    shown: Shown,
    /// The operators that are seen, and how many there are.
    operators: (Rows, usize),
    /// The counters that are seen.
    counters: Rows,
    /// Whether the last frame had no room for all of them.
    scrolls: bool,
    /// The screen of the last frame.
    area: Rect,
}

impl<S: Source> Dashboard<S> {
    /// A dashboard that begins to listen.
    pub fn new(source: S, mut run: Run, settings: Settings) -> Self {
        run.title = bounded(run.title);
        run.facts.iter_mut().for_each(|(_, fact)| *fact = bounded(std::mem::take(fact)));
        Self {
            chrome: Chrome::new(settings),
            source,
            run,
            state: State::default(),
            shown: Shown::Newest,
            operators: (Rows::default(), 0),
            counters: Rows::default(),
            scrolls: false,
            area: Rect::default(),
        }
    }

    /// The settings as they are now.
    pub fn settings(&self) -> Settings {
        self.chrome.settings()
    }

    /// What is kept of the updates.
    pub fn state(&self) -> &State {
        &self.state
    }

    fn actions(&self) -> Vec<Action> {
        use Action::{Bottom, Down, PageDown, PageUp, Top, Up};
        let mut actions = vec![Action::Freeze];
        if self.state.phase == Phase::Over {
            actions.insert(0, Action::OpenCapture);
        }
        if self.state.ranks.first().is_some_and(|steps| !steps.is_empty()) {
            actions.extend([Action::OlderStep, Action::NewerStep, Action::OldestStep, Action::NewestStep]);
        }
        if self.shown != Shown::Newest {
            actions.push(Action::Back);
        }
        if self.scrolls {
            actions.extend([Down, Up, PageDown, PageUp, Top, Bottom]);
        }
        actions.extend([Action::Export, Action::Quit]);
        if !self.chrome.theme.is_mono() {
            actions.push(Action::CycleTheme);
        }
        actions.extend(COMMON);
        actions
    }

    fn asked(&mut self, asked: Asked) -> Option<Request> {
        match asked {
            Asked::Act(action) => self.act(action),
            Asked::Point(Point::Wheel(_, _, up)) => {
                let action = if up { Action::Up } else { Action::Down };
                (0..3).for_each(|_| self.scroll(action));
                None
            }
            _ => None,
        }
    }

    /// Carries out an action, or says that it means nothing now.
    pub fn act(&mut self, action: Action) -> Option<Request> {
        if !self.actions().contains(&action) {
            self.chrome.refuse(action);
            return None;
        }
        if let Some(request) = self.chrome.act(action) {
            return request;
        }
        match action {
            Action::OpenCapture => return Some(Request::Open),
            Action::Freeze => {
                self.shown = match self.shown {
                    Shown::Newest => Shown::Frozen(self.source.now()),
                    _ => Shown::Newest,
                }
            }
            Action::Back | Action::NewestStep => self.shown = Shown::Newest,
            Action::OlderStep | Action::NewerStep | Action::OldestStep => self.go(action),
            Action::Export => {
                let text = self.text();
                return Some(Request::Save(vec![Export { name: "live".to_owned(), extension: "txt", text }]));
            }
            action => self.scroll(action),
        }
        None
    }

    /// What is seen, without the keys, as a text.
    fn text(&mut self) -> String {
        let mut buf = Buffer::empty(self.area);
        if self.chrome.begin(&mut buf) {
            self.page(&mut buf);
        }
        export::text(&text::rows(&buf, Rect { height: self.area.height.saturating_sub(1), ..self.area }))
    }

    fn scroll(&mut self, action: Action) {
        self.operators.0.scroll(action, self.operators.1);
        self.counters.scroll(action, usize::MAX / 2);
    }

    /// Goes to the step before or after the one that is shown, or to the oldest that is kept.
    fn go(&mut self, action: Action) {
        let Some(steps) = self.state.ranks.first() else { return };
        let at = match self.shown {
            Shown::Newest => steps.len().saturating_sub(1),
            Shown::Frozen(at) => steps.partition_point(|(t, _)| *t <= at).saturating_sub(1),
            Shown::Step(number, _) => steps.partition_point(|(_, step)| step.number <= number).saturating_sub(1),
        };
        let to = match action {
            Action::OldestStep => 0,
            // The first press shows the step that was the newest.
            Action::OlderStep if matches!(self.shown, Shown::Step(..)) => at.saturating_sub(1),
            Action::NewerStep => (at + 1).min(steps.len().saturating_sub(1)),
            _ => at,
        };
        if let Some((at, step)) = steps.get(to) {
            self.shown = Shown::Step(step.number, *at);
        }
    }

    fn phase(&self) -> Text {
        match self.state.phase {
            Phase::Watching => Text::new("watching", "观测中"),
            Phase::Preparing => Text::new("making the weights ready", "正在准备权重"),
            Phase::Running => Text::new("running", "运行中"),
            Phase::Writing => Text::new("writing the capture", "正在写入采集"),
            Phase::Over => Text::new("over, the capture is there", "已结束，采集就绪"),
            Phase::Failed => Text::new("failed", "失败"),
        }
    }

    /// What it is, how far it is, and what was lost.
    fn head(&self, line: Rect, buf: &mut Buffer) {
        let style = |role| self.chrome.theme.style(role);
        let mut right = line.right();
        let mut put = |text: String, role: Role| {
            let taken = text::width(&text) as u16 + 2;
            if line.x + taken < right {
                right -= taken;
                text::put(buf, (right, line.y), &text, taken, style(role));
            }
        };
        if self.state.phase == Phase::Running {
            let step = self.state.ranks.first().and_then(|steps| steps.back()).map_or(0, |(_, step)| step.number);
            put(format!("{step}/{}", self.run.steps), Role::Strong);
        }
        put(
            self.chrome.get(self.phase()).to_owned(),
            if self.state.phase == Phase::Failed { Role::Warn } else { Role::Dim },
        );
        let shown = match self.shown {
            Shown::Newest => None,
            Shown::Frozen(at) => {
                Some((Text::new("frozen at", "冻结于"), format!("{} s", units::tenths(at / 100_000_000))))
            }
            Shown::Step(step, _) => Some((Text::new("shown: step", "显示第"), step.to_string())),
        };
        if let Some((label, value)) = shown {
            put(format!("[{} {value}]", self.chrome.get(label)), Role::Tab);
        }
        let lost = self.source.lost().saturating_add(self.state.unkept);
        if lost > 0 {
            let label = self.chrome.get(Text::new("updates dropped:", "丢弃的更新："));
            put(format!("{label} {}", units::count(lost)), Role::Warn);
        }
        let room = right.saturating_sub(line.x + 1);
        text::put(buf, (line.x + 1, line.y), &text::safe(&self.run.title), room, style(Role::Title));
    }

    /// All but the keys.
    fn page(&mut self, buf: &mut Buffer) {
        let area = buf.area;
        self.head(Rect { height: 1, ..area }, buf);
        let rule = u16::from(area.height >= 12);
        if rule > 0 {
            let style = self.chrome.theme.style(Role::Dim);
            text::fill(buf, (area.x, area.y + 1), area.width, glyph::LINE, style);
        }
        let body = Rect {
            x: area.x + 1,
            y: area.y + 1 + rule,
            width: area.width.saturating_sub(2),
            height: area.height.saturating_sub(2 + rule),
        };
        self.body(body, buf);
    }

    fn body(&mut self, area: Rect, buf: &mut Buffer) {
        let (at, step) = match self.shown {
            Shown::Newest => (Ns::MAX, None),
            Shown::Frozen(at) => (at, None),
            Shown::Step(step, at) => (at, Some(step)),
        };
        let Self { chrome, run, state, operators: (rows, count), counters, scrolls, .. } = self;
        *scrolls = false;
        let moment = Moment { state, run, at, step };
        let scene = Scene { moment, theme: &chrome.theme, lang: chrome.lang };
        let width = usize::from(area.width);
        let mut y = area.y;
        let mut put = |lines: &[Line], x: u16, from: u16, width: u16, most: u16| {
            let area = Rect { x, y: from, width, height: most.min(area.bottom().saturating_sub(from)) };
            prose::draw(lines, 0, &chrome.theme, area, buf);
            area.bottom().min(from + lines.len() as u16)
        };
        if run.ranks == 0 {
            y = put(&panel::standing(&scene, width), area.x, y, area.width, u16::MAX);
            y = put(&panel::devices(&scene, width), area.x, y, area.width, u16::MAX);
        }
        if run.ranks > 0 {
            let curve = if area.height >= 50 { 4 } else { usize::from(area.height >= 30) * 2 + 1 };
            y = put(&panel::speed(&scene, width, curve), area.x, y, area.width, u16::MAX);
            y = put(&panel::layers(&scene, width), area.x, y, area.width, u16::MAX);
            let most = usize::from(area.height / 4).max(3);
            y = put(&panel::ranks(&scene, width, most), area.x, y, area.width, u16::MAX);
        }
        let events = (area.height / 6).clamp(2, 10);
        let bottom = area.bottom().saturating_sub(events).max(y);
        let below = bottom - y;
        let beside = area.width >= BESIDE;
        let left = match (run.ranks > 0, beside) {
            (false, _) => 0,
            (true, true) => area.width * 9 / 20,
            (true, false) => area.width,
        };
        if left > 0 {
            let height = if beside { usize::from(below) } else { usize::from(below / 2) };
            let top = rows.scrolled(*count, height.saturating_sub(1));
            let (lines, all) = panel::operators(&scene, usize::from(left), height, top);
            *count = all;
            *scrolls = all > height.saturating_sub(1);
            let end = put(&lines, area.x, y, left, height as u16);
            if !beside {
                y = end;
            }
        }
        let (x, room) = if beside && left > 0 {
            (area.x + left + 3, area.width.saturating_sub(left + 3))
        } else {
            (area.x, area.width)
        };
        let height = bottom.saturating_sub(y);
        let mut lines = panel::workload(&scene, usize::from(room));
        // Where nothing is run there is room for the counters in two columns.
        let halves = left == 0 && area.width >= 2 * BESIDE;
        let column = if halves { room / 2 - 2 } else { room };
        lines.extend(panel::gauges(&scene, usize::from(column)));
        let columns = if halves { 2 } else { 1 };
        let top = counters.scrolled(lines.len(), usize::from(height) * columns);
        let seen = lines.get(top..).unwrap_or_default();
        *scrolls |= lines.len() > usize::from(height) * columns;
        put(seen, x, y, column, height);
        if halves {
            put(seen.get(usize::from(height)..).unwrap_or_default(), x + column + 4, y, column, height);
        }
        let hidden = lines.len().saturating_sub(top + usize::from(height) * columns);
        put(&panel::events(&scene, width, usize::from(events)), area.x, bottom, area.width, events);
        if hidden > 0 && height > 0 {
            let note = format!(" ↓ {hidden} ");
            text::put_right(buf, (x, x + room, bottom - 1), &note, chrome.theme.style(Role::Dim));
        }
    }
}

impl<S: Source> Face for Dashboard<S> {
    fn key(&mut self, key: Key) -> Option<Request> {
        let asked = self.chrome.key(key, Scope::Live);
        self.asked(asked)
    }

    fn point(&mut self, point: Point) -> Option<Request> {
        let asked = self.chrome.point(point);
        self.asked(asked)
    }

    fn drag(&mut self, to: Option<(u16, u16)>) -> Option<Request> {
        let asked = self.chrome.drag(to);
        self.asked(asked)
    }

    fn lang(&self) -> Lang {
        self.chrome.lang
    }

    fn say(&mut self, message: String) {
        self.chrome.message = Some(message);
    }

    fn tick(&mut self) -> Tick {
        let mut tick = Tick::Same;
        let state = &mut self.state;
        self.source.poll(&mut |update| {
            state.take(update);
            tick = Tick::New;
        });
        tick
    }

    fn draw(&mut self, buf: &mut Buffer) {
        if !self.chrome.begin(buf) {
            return;
        }
        self.area = buf.area;
        self.page(buf);
        let valid = self.actions();
        self.chrome.finish(&valid, buf);
    }
}
