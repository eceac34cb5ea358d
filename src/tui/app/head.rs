//! What stands above a view: the tabs, and which capture it is.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{App, scene};
use crate::tui::{action::Action, key::Key, text, theme::Role, view::Scene, widget::prose};
use diagnosis::i18n::Text;
use report::file_name;

impl App {
    pub(super) fn tabs(&mut self, line: Rect, buf: &mut Buffer) {
        let at = self.view();
        // Where not all names fit, those farthest to the right have only their keys, but for the one that is seen.
        let label = |action: Action, whole: bool| {
            let key = self.chrome.keymap.keys(action).first().map_or(String::new(), Key::to_string);
            if whole { format!("{key} {}", action.text().get(self.chrome.lang)) } else { key }
        };
        let taken = |named: usize| -> usize {
            let labels = self.views.iter().enumerate().map(|(i, (action, _))| label(*action, i < named || i == at));
            labels.map(|label| text::width(&label) + 1).sum::<usize>().saturating_sub(1)
        };
        let named = (0..=self.views.len()).rev().find(|named| taken(*named) <= usize::from(line.width)).unwrap_or(0);
        let spare = usize::from(line.width).saturating_sub(taken(named));
        let gap = if spare >= self.views.len() { 2 } else { 1 };
        let mut x = line.x;
        for (i, (action, _)) in self.views.iter().enumerate() {
            let style = self.chrome.theme.style(if i == at { Role::Tab } else { Role::Dim });
            let room = line.right().saturating_sub(x);
            let taken = text::put(buf, (x, line.y), &label(*action, i < named || i == at), room, style);
            self.chrome.hits.push((Rect { x, y: line.y, width: taken, height: 1 }, *action));
            x += taken + gap;
        }
    }

    /// Which capture and rank is looked at, and what is being done to it.
    pub(super) fn title(&self, line: Rect, buf: &mut Buffer) {
        let Some(look) = self.captures.look(self.capture).filter(|_| line.height > 0) else { return };
        let style = |role| self.chrome.theme.style(role);
        let mut x = line.x + 1;
        let own = self.views.get(self.view()).and_then(|(_, view)| view.title(&scene!(self, look)));
        if let Some(own) = own {
            prose::draw(&[own], 0, &self.chrome.theme, Rect { x, width: line.width.saturating_sub(1), ..line }, buf);
            return;
        }
        let mut right = line.right();
        if let Some(doing) = &self.doing {
            text::put_right(buf, (x, right, line.y), &format!(" {doing} "), style(Role::Key));
            right = right.saturating_sub(text::width(doing) as u16 + 2);
        }
        let mut put = |text: &str, role: Role| {
            x += text::put(buf, (x, line.y), text, right.saturating_sub(x), style(role));
        };
        if self.captures.len() > 1 {
            put(&format!("{}/{} ", self.capture + 1, self.captures.len()), Role::Dim);
        }
        put(&text::safe(&file_name(&look.trace.source)), Role::Title);
        if look.trace.simulated {
            put(Text::new(" simulated", " 模拟数据").get(self.chrome.lang), Role::Warn);
        }
        let ranks = look.capture().map_or(&[][..], |capture| &capture.ranks);
        if let Some(part) = ranks.get(self.rank) {
            put(&format!("  rank {}", part.rank), Role::Text);
            if ranks.len() > 1 {
                put(&format!(" ({}/{})", self.rank + 1, ranks.len()), Role::Dim);
            }
            if let Some(class) = part.main_class() {
                put(&format!("  {}", text::safe(&class.key)), Role::Dim);
            }
        }
        let lost = look.trace.stats.iter().filter(|stat| stat.severity >= model::Severity::DataLoss);
        let lost: u64 = lost.map(|stat| stat.count).sum();
        if lost > 0 {
            let text = Text::new("lost in import", "导入丢失").get(self.chrome.lang);
            put(&format!("  {text}: {lost}"), Role::Warn);
        }
    }
}
