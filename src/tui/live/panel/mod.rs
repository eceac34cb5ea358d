//! Panels of the dashboard: each makes lines of a width from a moment, and nothing else.

mod devices;
mod events;
mod gauges;
mod layers;
mod operators;
mod ranks;
mod speed;
mod workload;

pub use devices::{SEVERAL, devices};
pub use events::events;
pub use gauges::gauges;
pub use layers::layers;
pub use operators::operators;
pub use ranks::ranks;
pub use speed::speed;
pub use workload::workload;

use super::{moment::Moment, standing};
use crate::tui::{
    glyph,
    lane::Kind,
    text,
    theme::{Role, Theme},
    view::initial,
    widget::prose::{Line, Piece, piece},
};
use diagnosis::{
    analysis::Layer,
    i18n::{Lang, Text},
};

/// What a panel is made from.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// What is known.
    pub moment: Moment<'a>,
    /// Colours.
    pub theme: &'a Theme,
    /// Language.
    pub lang: Lang,
}

impl Scene<'_> {
    fn get(&self, text: Text) -> &'static str {
        text.get(self.lang)
    }

    fn title(&self, text: Text) -> Piece {
        piece(self.get(text), Role::Title)
    }

    /// A bar of `width` cells in which each layer has its share of `whole`.
    fn bar(&self, layers: [i64; 4], whole: i64, width: usize) -> Line {
        let (mut sum, mut drawn) = (0, 0);
        let mut line = Line::new();
        for (layer, ns) in Layer::ALL.into_iter().zip(layers) {
            sum += ns;
            // Ends are rounded, not lengths, so that the bar has its whole width.
            let end = (i128::from(sum) * width as i128 / i128::from(whole.max(1))).clamp(0, width as i128) as usize;
            line.push(piece(self.mark(layer).repeat(end.saturating_sub(drawn)), Role::Kind(Kind::of_layer(layer))));
            drawn = drawn.max(end);
        }
        line
    }

    /// What a layer is drawn with.
    fn mark(&self, layer: Layer) -> String {
        if self.theme.is_mono() { initial(layer).to_string() } else { glyph::SOLID.to_owned() }
    }
}

/// What the machine does, in a sentence of at most two lines.
pub fn standing(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let Some(event) = standing::of(&scene.moment) else { return Vec::new() };
    let said = text::safe(if scene.lang == Lang::En { &event.en } else { &event.zh });
    let role = if event.warns { Role::Warn } else { Role::Strong };
    let mut lines = crate::tui::widget::prose::wrap(&[piece(said, role)], width, ("", ""));
    lines.truncate(2);
    lines.push(Line::new());
    lines
}

/// Items beside each other, each of them whole, in as many lines as they need.
fn flow(items: Vec<Line>, width: usize) -> Vec<Line> {
    const GAP: usize = 3;
    let mut out: Vec<Line> = Vec::new();
    let mut used = 0;
    for item in items {
        let wide: usize = item.iter().map(|piece| text::width(&piece.text)).sum();
        match out.last_mut().filter(|_| used + GAP + wide <= width) {
            Some(line) => {
                line.push(piece(" ".repeat(GAP), Role::Dim));
                line.extend(item);
                used += GAP + wide;
            }
            None => {
                out.push(item);
                used = wide;
            }
        }
    }
    out
}

/// `text` in exactly `width` cells, at their left or right.
fn cell(shown: &str, width: usize, right: bool) -> String {
    let shown = text::fit(shown, width);
    let pad = " ".repeat(width.saturating_sub(text::width(&shown)));
    if right { pad + &shown } else { format!("{shown}{pad}") }
}
