//! What a capture lacks, in words: it heads the verdict, goes to stderr, and takes away the findings that it could have made.

use super::finding::{Abstention, Finding, Severity};
use crate::{
    analysis::{Analysis, Bucket, Layer, Loss, loss::Part},
    i18n::{Message, Text, Value},
};

/// Ranks that a sentence names.
const NAMED: usize = 6;
/// Share of a step in collectives from which a rank that was captured alone says how many the others are; that of waits that
/// need a word.
const SHARED: f64 = 0.10;

/// Everything that is lost, one sentence each, without its full stop.
pub fn notes(loss: &Loss) -> Vec<Message> {
    let mut notes = records(loss, |part| part.lost > 0, loss.files > loss.named_files);
    let text = Text::new("{n} rows stand twice and were counted once", "有 {n} 行重复出现，只计一次");
    notes.extend((loss.doubled > 0).then(|| Message::new(text, [("n", Value::Count(loss.doubled))])));
    notes.extend(loss.ranks.as_ref().filter(|ranks| ranks.captured > 1).and_then(|_| ranks(loss)));
    notes
}

/// What is lost of that which was recorded.
fn records(loss: &Loss, counts: impl Fn(Part) -> bool, files: bool) -> Vec<Message> {
    let part = |text: Text, part: Part, what: Text| {
        let args = [("lost", Value::Count(part.lost)), ("all", Value::Count(part.all)), ("what", Value::Text(what))];
        Message::new(text, args)
    };
    const UNREAD: Text = Text::new("{lost} of {all} {what} could not be read", "{all} 个{what}中有 {lost} 个无法读取");
    const MISSING: Text = Text::new(
        "{lost} of {all} {what} are not in the capture: their numbers are left out",
        "{all} 个{what}中有 {lost} 个不在采集中：缺少其编号",
    );
    const SILENT: Text = Text::new("{lost} of {all} {what} have no record", "{all} 个{what}中有 {lost} 个没有执行记录");
    const UNLAUNCHED: Text = Text::new(
        "the calls that launched {lost} of {all} {what} have no record",
        "{all} 个{what}中有 {lost} 个的下发调用没有记录",
    );
    let device = match loss.only_kernels && loss.device.lost > 0 {
        true => Text::new("kernels", "内核"),
        false => Text::new("device operations", "设备操作"),
    };
    let mut out = Vec::new();
    if let Some(cut) = &loss.cut {
        let at = cut.at.clone().map_or(Value::Text(Text::new("an unknown place", "未知位置")), Value::Phrase);
        let rest = match cut.covered.filter(|_| cut.device_last) {
            Some(covered) => Message::new(
                Text::new(
                    "; its format holds device operations last, and they reach {covered} of the recorded time",
                    "；该格式最后写设备操作，已读到的部分覆盖记录时间的 {covered}",
                ),
                [("covered", Value::Share(f64::from(covered) / 1000.0))],
            ),
            None => Message::plain(Text::new("", "")),
        };
        let text =
            Text::new("the source could not be read to its end ({at}){rest}", "源文件未能读到末尾（{at}）{rest}");
        out.push(Message::new(text, [("at", at), ("rest", rest.within())]));
    }
    if loss.other_runs > 0 {
        let text = Text::new(
            "the source holds {n} runs of different processes or devices one after the other; split it",
            "源文件依次包含 {n} 次不同进程或设备的运行；请将其拆分",
        );
        out.push(Message::new(text, [("n", Value::Count(loss.other_runs.saturating_add(1)))]));
    }
    if counts(loss.device) {
        let text = if loss.missing == loss.device.lost { MISSING } else { UNREAD };
        out.push(part(text, loss.device, device));
    }
    if counts(loss.host) {
        out.push(part(UNREAD, loss.host, Text::new("calls and operators of the host", "主机调用与算子")));
    }
    if counts(loss.unknown) {
        out.push(part(UNREAD, loss.unknown, Text::new("records", "记录")));
    }
    if counts(loss.unrecorded) {
        out.push(part(SILENT, loss.unrecorded, Text::new("launched operations", "已下发的操作")));
    }
    if counts(loss.links) && !counts(loss.host) {
        out.push(part(UNLAUNCHED, loss.links, Text::new("device operations", "设备操作")));
    }
    if files {
        let text = Text::new("files of the capture could not be read: {n}", "采集中无法读取的文件：{n} 个");
        out.push(Message::new(text, [("n", Value::Count(loss.files))]));
    }
    out
}

/// How many ranks of the job were captured, and which were not: of one that was captured alone these are all others.
fn ranks(loss: &Loss) -> Option<Message> {
    let ranks = loss.ranks.as_ref()?;
    let absent: &[u32] = if ranks.captured > 1 { &ranks.absent } else { &[] };
    let shown = absent.get(..NAMED).unwrap_or(absent);
    let more = ranks.all.saturating_sub(ranks.captured).saturating_sub(shown.len() as u64);
    let who = match (shown, more) {
        ([], _) => Text::new("", ""),
        ([_], 0) => Text::new(", rank {absent} is absent", "，缺 rank {absent}"),
        (_, 0) => Text::new(", ranks {absent} are absent", "，缺 rank {absent}"),
        _ => Text::new(", ranks {absent} and {more} others are absent", "，缺 rank {absent} 等（另 {more} 个）"),
    };
    let absent = match shown {
        [one] => Value::Count((*one).into()),
        several => Value::Phrase(several.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    let who = Message::new(who, [("absent", absent), ("more", Value::Count(more))]);
    let text = match ranks.at_least {
        true => Text::new(
            "{captured} of at least {all} ranks captured{who}",
            "至少 {all} 个 rank 中采集了 {captured} 个{who}",
        ),
        false => Text::new("{captured} of {all} ranks captured{who}", "{all} 个 rank 中采集了 {captured} 个{who}"),
    };
    let counts = [("captured", ranks.captured), ("all", ranks.all)].map(|(name, n)| (name, Value::Count(n)));
    Some(Message::new(text, counts.into_iter().chain([("who", who.within())])))
}

/// What of it can change the answer, as one sentence.
pub(super) fn sentence(analysis: &Analysis) -> Option<Message> {
    let loss = &analysis.loss;
    let mut said = records(loss, |part| loss.matters(part), loss.files > 0);
    let alone = loss.ranks.as_ref().is_some_and(|ranks| ranks.captured == 1);
    let shares = |rank: &crate::analysis::Rank| {
        let collectives = |bucket: Bucket| matches!(bucket, Bucket::CommWait | Bucket::CommTransfer);
        rank.main_class().is_some_and(|class| class.share(collectives) >= SHARED)
    };
    said.extend(ranks(loss).filter(|_| !alone || analysis.ranks.iter().any(shares)));
    said.into_iter().reduce(|first, then| {
        let text = Text::new("{first}; {then}", "{first}；{then}");
        Message::new(text, [("first", first.within()), ("then", then.within())])
    })
}

/// The headline behind what the capture lacks.
pub(super) fn head(analysis: &Analysis, headline: Message) -> Message {
    let Some(lost) = sentence(analysis) else { return headline };
    // One rank is what many record of a job; the report says what follows from that.
    let alone = analysis.loss.ranks.as_ref().is_some_and(|ranks| ranks.captured == 1) && !analysis.loss.is_any();
    let text = match alone {
        true => Text::new("{lost}. {headline}", "{lost}。{headline}"),
        false => Text::new("Incomplete: {lost}. {headline}", "不完整：{lost}。{headline}"),
    };
    Message::new(text, [("lost", lost.within()), ("headline", headline.within())])
}

/// Takes the findings away that rest on what is lost: idle time may be work without a record, the cause of a wait a call without
/// one, and what is a kernel's share of a step, or stands beside it, nobody knows where other kernels are missing.
pub(super) fn withhold(findings: &mut Vec<Finding>, analysis: &Analysis) -> Vec<Abstention> {
    let loss = &analysis.loss;
    let rests = |finding: &Finding| match finding.layer {
        Layer::Runtime => loss.forbids_causes(),
        Layer::Communication | Layer::Operator => loss.forbids_shares(),
        Layer::Measurement => false,
    };
    let gains = |finding: &Finding| finding.severity > Severity::Info || finding.estimate.max_gain_share() > 0.0;
    let Some(lost) = sentence(analysis) else { return Vec::new() };
    let mut withheld: Vec<Abstention> = Vec::new();
    findings.retain(|finding| {
        let keep = !(rests(finding) && gains(finding));
        if !keep && withheld.iter().all(|known| known.rule != finding.rule) {
            let text = Text::new(
                "withheld, because {lost}: the times and shares that it rests on are not known",
                "未予采用：{lost}，它所依据的时间与占比无从得知",
            );
            let why = Some(Message::new(text, [("lost", lost.clone().within())]));
            withheld.push(Abstention { rule: finding.rule, needs: Vec::new(), why });
        }
        keep
    });
    withheld
}
