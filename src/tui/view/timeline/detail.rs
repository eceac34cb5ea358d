//! What is known of the selected slice, in a few lines.

use model::{Detail, Ns, SliceId, Span, Trace};

use crate::tui::{
    lane::{Lane, Of, Shape, moved},
    text,
    theme::Role,
    view::Scene,
    widget::prose::{Line, piece},
};
use diagnosis::{
    analysis::Rank,
    i18n::{Lang, Text},
};
use report::{
    sections::{buckets, words},
    units,
};

/// A label and what it labels.
fn fact(line: &mut Line, lang: Lang, label: Text, value: String) {
    line.push(piece(format!("{} ", label.get(lang)), Role::Dim));
    line.push(piece(format!("{value}   "), Role::Text));
}

/// Name of what a slot of a lane shows; text of the capture.
pub fn name(scene: &Scene<'_>, lane: &Lane, slot: usize) -> String {
    lane.name_of(slot, scene.look.trace, scene.look.analysis())
}

/// The slice of the trace that a slot stands for.
pub fn slice(scene: &Scene<'_>, lane: &Lane, slot: usize) -> Option<SliceId> {
    let row = lane.slices()?.row(slot)?;
    match lane.of {
        Of::Track(track, _) => Some(scene.look.trace.lanes.get(track.0 as usize)?.id(row as usize)),
        Of::Collectives(rank) | Of::Copies(rank) => {
            Some(scene.look.analysis()?.ranks.get(rank)?.timeline.ops.get(row as usize)?.slice)
        }
        Of::Replays(rank) => Some(scene.look.analysis()?.ranks.get(rank)?.timeline.calls.get(row as usize)?.slice),
        Of::Idle(rank) => {
            let rank = scene.look.analysis()?.ranks.get(rank)?;
            let owner = rank.gaps.get(row as usize)?.owner?;
            Some(rank.timeline.ops.get(owner as usize)?.slice)
        }
        Of::Steps(_) | Of::Counter(_) => None,
    }
}

/// What is known of a counter at a time.
pub fn sample(scene: &Scene<'_>, lane: &Lane, t: Ns) -> Vec<Line> {
    let (Of::Counter(at), Shape::Samples(samples)) = (lane.of, &lane.shape) else { return Vec::new() };
    let unit = scene.look.trace.counters.get(at).map_or("", |counter| counter.unit.as_str());
    let number = |value: f64| match unit {
        "" => units::number(value),
        unit => format!("{} {}", units::number(value), text::safe(unit)),
    };
    let head = vec![piece(text::safe(&lane.name), Role::Strong)];
    let mut here = Vec::new();
    samples.columns(Span::new(t, t.saturating_add(1)), 1, &mut here);
    let mut values = Line::new();
    match here.first().copied().flatten() {
        Some(value) => fact(&mut values, scene.lang, Text::new("at the cursor", "光标处"), number(value.most)),
        None => {
            let none = Text::new("no sample yet at the cursor   ", "光标处尚无采样   ");
            values.push(piece(scene.get(none), Role::Dim));
        }
    }
    if let Some(range) = samples.range() {
        fact(&mut values, scene.lang, Text::new("least", "最小"), number(range.least));
        fact(&mut values, scene.lang, Text::new("most", "最大"), number(range.most));
    }
    fact(&mut values, scene.lang, Text::new("samples", "采样数"), units::count(samples.len() as u64));
    vec![head, values]
}

/// What is known of a slot, in at most three lines.
pub fn lines(scene: &Scene<'_>, lane: &Lane, slot: usize, zero: Ns) -> Vec<Line> {
    let Some((span, kind)) = lane.slices().and_then(|index| Some((index.span(slot)?, index.kind(slot)?))) else {
        return Vec::new();
    };
    let name = text::safe(&name(scene, lane, slot));
    let mut head = vec![piece(scene.get(kind.text()), Role::Kind(kind)), piece("  ", Role::Text)];
    let mut time = Line::new();
    let span = lane.whole(slot, scene.look.trace, scene.look.analysis()).unwrap_or(span);
    fact(&mut time, scene.lang, Text::new("from", "开始"), units::exact_ns(span.start.saturating_sub(zero)));
    fact(&mut time, scene.lang, Text::new("for", "时长"), units::exact_ns(span.len()));
    let mut more = Line::new();
    match lane.of {
        Of::Steps(rank) => {
            let rank = scene.look.analysis().and_then(|analysis| analysis.ranks.get(rank));
            let row = lane.slices().and_then(|index| index.row(slot)).unwrap_or(0);
            if let Some((rank, step)) = rank.and_then(|rank| Some((rank, rank.steps.get(row as usize)?))) {
                head = vec![piece(scene.get(Text::new("step", "步")), Role::Kind(kind))];
                head.push(piece(format!(" {}  {}", step.index, text::safe(&step.label)), Role::Strong));
                let class = rank.classes.get(step.class).map_or(String::new(), |class| text::safe(&class.key));
                fact(&mut time, scene.lang, Text::new("class", "类别"), class);
                more.push(piece(scene.get(words::selection(step.selection)), Role::Dim));
            }
        }
        Of::Idle(_) => {
            head.push(piece(name.clone(), Role::Strong));
            more.push(piece(scene.get(buckets::meaning(&name)), Role::Text));
            if let Some(owner) =
                slice(scene, lane, slot).and_then(|id| Some(slice_name(scene.look.trace, id)?.to_owned()))
            {
                more.push(piece(format!(" {} ", scene.get(Text::new("— ended by", "——由其结束："))), Role::Dim));
                more.push(piece(text::safe(&owner), Role::Name));
            }
        }
        Of::Replays(rank) => {
            head.push(piece(name, Role::Strong));
            let row = lane.slices().and_then(|index| index.row(slot)).unwrap_or(0);
            let rank = scene.look.analysis().and_then(|analysis| analysis.ranks.get(rank));
            if let Some(call) = rank.and_then(|rank| rank.timeline.calls.get(row as usize)) {
                let operations = units::count(u64::from(call.ops));
                fact(&mut time, scene.lang, Text::new("operations", "算子执行"), operations);
                fact(
                    &mut more,
                    scene.lang,
                    Text::new("its launch call took", "下发调用耗时"),
                    units::time(call.end - call.start),
                );
                let recorded = lane.slices().and_then(|index| index.recorded(slot)).unwrap_or(span);
                let before = recorded.start.saturating_sub(call.start);
                fact(
                    &mut more,
                    scene.lang,
                    Text::new("from launch to first operation", "下发到首个执行"),
                    units::time(before),
                );
            }
        }
        _ => {
            head.push(piece(name, Role::Strong));
            if let Some(id) = slice(scene, lane, slot) {
                let shift = lane.slices().map_or(0, |index| index.shift());
                of_slice(scene, id, moved(span, shift.saturating_neg()), &mut time, &mut more);
            }
        }
    }
    vec![head, time, more]
}

/// Name of a slice of the trace.
pub fn slice_name(trace: &Trace, id: SliceId) -> Option<&str> {
    let (track, row) = trace.locate(id)?;
    Some(trace.strings.get(*trace.lanes.get(track.0 as usize)?.name.get(row)?))
}

/// Facts of a slice of the trace: operator, launch, shape, bytes.
fn of_slice(scene: &Scene<'_>, id: SliceId, span: Span, time: &mut Line, more: &mut Line) {
    let trace = scene.look.trace;
    let Some((track, row)) = trace.locate(id) else { return };
    let Some(columns) = trace.lanes.get(track.0 as usize) else { return };
    let lang = scene.lang;
    if let Some(op) = columns.name.get(row).and_then(|name| scene.look.analysis()?.ops.get(name)) {
        fact(time, lang, Text::new("operator", "算子"), op.op.name().to_owned());
    }
    if let Some((track, call)) = columns.link(row).and_then(|call| trace.locate(call))
        && let Some(calls) = trace.lanes.get(track.0 as usize)
    {
        let name = calls.name.get(call).map_or("", |name| trace.strings.get(*name));
        let returned = calls.end(call);
        fact(more, lang, Text::new("launched by", "下发自"), text::safe(name));
        let apart = units::time(i64::try_from(span.start.abs_diff(returned)).unwrap_or(i64::MAX));
        // A device may begin before the call that launches has returned.
        let begun = match (span.start < returned, lang) {
            (true, Lang::En) => format!("begun {apart} before its return   "),
            (false, Lang::En) => format!("begun {apart} after its return   "),
            (true, Lang::Zh) => format!("在其返回前 {apart} 开始   "),
            (false, Lang::Zh) => format!("在其返回后 {apart} 开始   "),
        };
        more.push(piece(begun, Role::Text));
    }
    match trace.detail(columns, row) {
        Some(Detail::Kernel(kernel)) => {
            let shape = |[x, y, z]: [u32; 3]| format!("{x}×{y}×{z}");
            if let Some(grid) = kernel.grid {
                fact(more, lang, Text::new("grid", "网格"), shape(grid));
            }
            if let Some(block) = kernel.block {
                fact(more, lang, Text::new("block", "线程块"), shape(block));
            }
            if let Some(graph) = kernel.graph {
                let node = kernel.graph_node.map_or(String::new(), |node| format!(":{node}"));
                fact(more, lang, Text::new("graph", "图"), format!("{graph}{node}"));
            }
        }
        Some(Detail::Copy(copy)) => {
            if let Some(bytes) = copy.bytes {
                fact(more, lang, Text::new("bytes", "字节"), units::bytes(bytes));
            }
        }
        Some(Detail::Op(op)) => {
            if let Some(shapes) = op.shapes {
                fact(more, lang, Text::new("shapes", "形状"), text::safe(trace.strings.get(shapes)));
            }
        }
        _ => {}
    }
}

/// What a launch call caused, or the launch call of what was caused.
pub fn linked(scene: &Scene<'_>, id: SliceId) -> Option<SliceId> {
    let (track, row) = scene.look.trace.locate(id)?;
    let columns = scene.look.trace.lanes.get(track.0 as usize)?;
    columns.link(row).or_else(|| match scene.look.analysis() {
        Some(analysis) => analysis.ranks.iter().find_map(|rank| caused(rank, id)),
        None => first_linked(scene.look.trace, id),
    })
}

/// The first operation of a rank that a call caused.
fn caused(rank: &Rank, id: SliceId) -> Option<SliceId> {
    let call = rank.timeline.calls.iter().position(|call| call.slice == id)?;
    rank.timeline.ops.iter().find(|op| op.call == Some(call as u32)).map(|op| op.slice)
}

/// The same as the links of the trace alone say it.
fn first_linked(trace: &Trace, id: SliceId) -> Option<SliceId> {
    let first = trace.lanes.iter().filter_map(|lane| {
        let row = lane.link.iter().position(|link| *link == id.0)?;
        Some((*lane.start.get(row)?, lane.id(row)))
    });
    first.min().map(|(_, found)| found)
}
