//! What is seen, as files.

use ratatui::buffer::Buffer;

use super::{App, Request, is_ready, scene};
use crate::tui::{
    export::{self, Export},
    text,
    view::Scene,
};

impl App {
    /// What is seen as text, and what the view has in other forms.
    pub(super) fn export(&mut self) -> Option<Request> {
        let at = self.view();
        let look = self.captures.look(self.capture)?;
        let (action, view) = self.views.get_mut(at).filter(|(_, view)| is_ready(view.as_ref(), &look))?;
        let name = action.id().trim_start_matches("show_");
        let mut buf = Buffer::empty(self.body);
        view.draw(&scene!(self, look), self.body, &mut buf);
        let mut forms = view.export(&scene!(self, look));
        if forms.iter().all(|(extension, _)| *extension != "txt") {
            forms.insert(0, ("txt", export::text(&text::rows(&buf, self.body))));
        }
        let file = |(extension, text)| Export { name: name.to_owned(), extension, text };
        Some(Request::Save(forms.into_iter().map(file).collect()))
    }
}
