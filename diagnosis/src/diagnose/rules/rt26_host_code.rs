//! RT-26: the device idles while the host runs code that no other rule speaks of.

use model::{
    EvidenceClass::{Correlation, Device, HostApi},
    Span, StringId,
};
use rustc_hash::FxHashMap;

use super::{
    exposed::{Exposed, Saying},
    first_use::FirstUses,
    gate::Cost,
    owned::{self, Owned},
    reading,
    start_up::is_start_up,
};
use crate::{
    analysis::{Bucket, Class, Confidence, Layer, Owner, Rank, idle::Gap},
    diagnose::{
        Competing, Evidence, Finding, Intervention,
        relations::{Advice, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::{Message, Text, Value},
};

/// Share of the idle time that one owner has; own value.
const OF_IDLE: f64 = 1.0 / 3.0;
/// Share of the step; own value.
const OF_STEP: f64 = 0.10;
/// Share of the owner's time from which another rule speaks of it; own value, that of all rules that claim the same time.
const CLAIMED: f64 = 0.5;

/// Shortest pause that operators own together, ns; own value, that of RT-25.
const TOGETHER: i64 = 100_000;

/// The rule.
pub struct HostCode;

static DOC: Doc = Doc {
    id: "RT-26",
    title: Text::new("Idle while the host runs other code", "主机执行其他代码时设备空闲"),
    layer: Layer::Runtime,
    needs: &[Device, HostApi, Correlation],
    advice: Advice::Host,
    relations: Relations::NONE,
    sees: Text::new(
        "One function, range or operator of the host owns much of the idle time, and no other rule speaks of it; so may a second one.",
        "主机上的某个函数、区间或算子占有大部分空闲，且没有其他规则涉及它；也可能有第二个。",
    ),
    matters: Text::new(
        "Where the time is lost is known, even where why is not: that is the place to look at first.",
        "即使原因未知，时间损失的位置是已知的：应首先查看该处。",
    ),
    trigger: Text::new(
        "An owner of at least a third of the idle time and of at least 10 % of the mean step, of whose time other findings claim less than half.",
        "某归属者占空闲至少三分之一、占平均步时至少 10%，且其他结论主张的不足其一半。",
    ),
    source: Text::new("A third, 10 % and half: own values.", "三分之一、10% 与一半：自定值。"),
    guards: Text::new(
        "Records that span the whole step own nothing; the framework operators inside such a record own a pause of 0.1 ms and more together, where none of them has half of it. Of a start-up, in which code is compiled or loaded for the first time, nothing counts. The estimate is a bound: nothing says how much of the code is needed.",
        "跨越整步的记录不作归属；若其内没有任一框架算子占停顿的一半，0.1 ms 及以上的停顿由这些算子共同归属。首次编译或加载代码的启动阶段不计入。估计只是上界：没有信息说明这些代码有多少是必需的。",
    ),
    verify: Text::new(
        "Shorten or move the named code and record again: its group of idle time shrinks.",
        "缩短或移走所指代码后重新采集：对应的空闲组缩小。",
    ),
};

impl Rule for HostCode {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn check(&self, _: &Context<'_>) -> Outcome {
        Outcome::Quiet
    }

    fn check_rest(&self, cx: &Context<'_>, found: &[Finding]) -> Outcome {
        let steps = cx.main_classes().filter(|(rank, class)| !is_start_up(rank, class));
        steps.flat_map(|(rank, class)| unclaimed(cx, found, rank, class)).collect()
    }
}

fn unclaimed(cx: &Context<'_>, found: &[Finding], rank: &Rank, class: &Class) -> Vec<Finding> {
    // What is slow only because it is the first of its kind is gone in the next run, whatever the code around it does.
    let first = FirstUses::of(rank, class);
    let idle = class.sum(|bucket| bucket.is_idle());
    // Of ranks the findings are one, whatever owner each of them names: there only the first is told.
    let most = if cx.analysis.ranks.len() > 1 { 1 } else { usize::MAX };
    let owners = owners(cx, rank, class, &first).into_iter().take(most);
    let much = owners.take_while(|(_, ns)| *ns as f64 >= OF_IDLE * idle as f64);
    much.filter_map(|(doing, _)| owned_by(cx, found, (rank, class), &first, doing)).collect()
}

/// What is to be said of one owner, if no other finding claims its time.
fn owned_by(
    cx: &Context<'_>,
    found: &[Finding],
    (rank, class): (&Rank, &Class),
    first: &FirstUses<'_>,
    most: Doing,
) -> Option<Finding> {
    let own = Owned::of(rank, rank.steady_steps(class), |gap, owner, bucket, part| {
        (doing(cx, rank, gap, owner, bucket) == Some(most) && !first.cover(part)).then_some(part)
    });
    let idle = class.sum(|bucket| bucket.is_idle());
    let share = own.total as f64 / class.total.max(1) as f64;
    if share < OF_STEP || (own.total as f64) < OF_IDLE * idle as f64 {
        return None;
    }
    let claims = found.iter().filter(|f| f.layer == Layer::Runtime && f.class == class.key);
    let changes = claims.flat_map(|f| &f.changes).filter(|(of, _)| *of == rank.rank);
    let spans: Vec<Span> = changes.flat_map(|(_, change)| owned::claimed(rank, change)).collect();
    if own.share_in(&reading::merged(spans)) >= CLAIMED {
        return None;
    }
    let spoken = match most {
        Doing::Record(name) => owned::spoken(cx, rank, name, own.total),
        Doing::Operators => owned::together(cx, rank, own.total, TOGETHER)?,
    };
    let per_step = own.per_step(class);
    let cost = Cost { per_step, share, most: Confidence::Medium };
    let saying = Saying {
        formula: Text::new("idle time of one owner / mean step", "单一归属者的空闲 / 平均步时"),
        claim: match most {
            Doing::Record(_) => Text::new(
                "In {class} the device is idle for {idle} of {mean} ({share}) while the host runs {owner}.",
                "{class} 中主机执行 {owner} 时设备空闲 {idle}，平均步时 {mean}（{share}）。",
            ),
            Doing::Operators => Text::new(
                "In {class} the device is idle for {idle} of {mean} ({share}) while the host runs framework operators, most of all {owner}, none of which has half of a pause.",
                "{class} 中主机执行一串框架算子（以 {owner} 为主，均未占到停顿的一半）时设备空闲 {idle}，平均步时 {mean}（{share}）。",
            ),
        },
        more: vec![
            ("owner", Value::Raw(spoken.place.clone())),
            ("mean", Value::Ns(class.total / class.steady.max(1) as i64)),
        ],
        change: Intervention { removes: per_step, layer: Layer::Runtime, edits: Vec::new() },
    };
    let mut finding = Exposed { cx, doc: &DOC, rank, class }
        .finding(OF_STEP, &cost, saying)
        .with(Evidence::new(
            Text::new("idle per step that it owns", "每步归属于它的空闲"),
            Value::Ns(per_step),
            reading::sample(own.rows.iter().copied()),
        ))
        .with(Evidence::new(
            Text::new("share of all idle time", "占全部空闲的比例"),
            Value::Share(own.total as f64 / idle.max(1) as f64),
            Vec::new(),
        ))
        .with(Evidence::new(Text::new("the longest gap", "最长的间隙"), Value::Ns(own.longest()), Vec::new()));
    if !spoken.children.is_empty() {
        finding = finding.with(Evidence {
            what: Message::new(
                Text::new("gaps; inside it {children}", "间隙数；其内有 {children}"),
                [("children", Value::Raw(spoken.children))],
            ),
            value: Value::Count(own.pauses.len() as u64),
            rows: Vec::new(),
        });
    }
    finding
        .against(Competing::open(
            Text::new("what comes next needs the result of this code", "后续工作需要这段代码的结果"),
            Text::new("the code itself decides", "查看代码本身可以判定"),
        ))
        .gated(cost.most)
}

/// What the host does in a part of a gap.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Doing {
    /// The owner of its own code, or a launch call that takes long by itself.
    Record(StringId),
    /// Several framework operators of which none has half of the gap, in a record that spans the step.
    Operators,
}

fn doing(cx: &Context<'_>, rank: &Rank, gap: &Gap, owner: Option<&Owner>, bucket: Bucket) -> Option<Doing> {
    if matches!(bucket, Bucket::LaunchApi | Bucket::GraphLaunch) && gap.span.len() >= reading::LONG {
        return Some(Doing::Record(rank.timeline.call(reading::owner(rank, gap)?)?.name));
    }
    let owner = owner.filter(|_| owned::is_code(cx, bucket))?;
    let of_framework = || gap.parts.iter().filter(|(bucket, _)| reading::is_host(cx.analysis, *bucket, "framework"));
    let operators = || owner.ns >= TOGETHER && 2 * of_framework().map(|(_, part)| part.len()).sum::<i64>() >= owner.ns;
    match owner.wraps {
        false => Some(Doing::Record(owner.name)),
        true => operators().then_some(Doing::Operators),
    }
}

/// The owners of the idle time of the steps that count, those of the most time first.
fn owners(cx: &Context<'_>, rank: &Rank, class: &Class, first: &FirstUses<'_>) -> Vec<(Doing, i64)> {
    let mut names: FxHashMap<Doing, i64> = FxHashMap::default();
    for gap in rank.steady_steps(class).flat_map(|step| reading::gaps(rank, step)) {
        for (bucket, part) in gap.parts.iter().filter(|(_, part)| !first.cover(*part)) {
            if let Some(name) = doing(cx, rank, gap, rank.owner_of(gap), *bucket) {
                *names.entry(name).or_default() += part.len();
            }
        }
    }
    let text = |of: Doing| match of {
        Doing::Record(name) => cx.trace.strings.get(name),
        Doing::Operators => "",
    };
    let mut owners: Vec<(Doing, i64)> = names.into_iter().collect();
    owners.sort_by_key(|(of, ns)| (std::cmp::Reverse(*ns), text(*of)));
    owners
}
