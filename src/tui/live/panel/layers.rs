//! Where the time of the newest steps went, by layer.

use super::{Scene, flow};
use crate::tui::{
    live::reasons,
    text,
    theme::Role,
    widget::prose::{Line, piece},
};
use diagnosis::{analysis::Layer, i18n::Text};
use report::{sections::words, units};

/// A bar of the layers with their shares.
pub fn layers(scene: &Scene<'_>, width: usize) -> Vec<Line> {
    let title = scene.title(Text::new("Where the time of a step goes", "步时间去向"));
    let Some((layers, steps)) = scene.moment.layers(0) else {
        let reason = match scene.moment.no_layers() {
            Some(reason) => text::safe(&reasons::said(reason, scene.lang)),
            None => scene.get(Text::new("no decode step yet", "尚无解码步")).to_owned(),
        };
        let reason = text::fit(&format!("– {reason}"), width).into_owned();
        return vec![vec![title], vec![piece(reason, Role::Dim)], Line::new()];
    };
    let whole: i64 = layers.iter().sum();
    let of = match (scene.moment.step, steps) {
        (Some(step), _) => format!("  {} {step}", scene.get(Text::new("step", "第"))),
        (None, steps) => format!("  {} {steps}", scene.get(Text::new("newest steps:", "最近步数："))),
    };
    let legend = Layer::ALL.into_iter().zip(layers).map(|(layer, ns)| {
        vec![
            piece(scene.mark(layer), Role::Layer(layer)),
            piece(format!(" {} ", scene.get(words::layer(layer))), Role::Text),
            piece(units::share_of(ns, whole), Role::Strong),
        ]
    });
    let mut out = vec![vec![title, piece(of, Role::Dim)], scene.bar(layers, whole, width)];
    out.extend(flow(legend.collect(), width));
    out
}
