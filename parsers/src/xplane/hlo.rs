//! An instruction of XLA's high-level form as the profiler of a TPU names its rows:
//! `%copy-start = (f32[8]{0}, f32[8]{0:S(5)}, u32[]{:S(2)}) copy-start(f32[8]{0:S(5)} %param)`. The opcode stands behind the shape of
//! the result, the memory of a shape in `S(…)`. Source: `HloInstruction::ToString`, and `Layout` of `xla/layout.h`, which gives
//! memory 5 to the host.

/// Longest layout that is looked at, bytes; real ones have some dozens.
const LAYOUT: usize = 256;
/// Number of the host's memory.
const HOST: i64 = 5;
/// Opcodes of exchanges between devices, and what collectives are called elsewhere.
const COLLECTIVES: [(&str, &str); 10] = [
    ("all-reduce", "allreduce"),
    ("all-gather", "allgather"),
    ("reduce-scatter", "reduce_scatter"),
    ("all-to-all", "alltoall"),
    ("ragged-all-to-all", "alltoall"),
    ("collective-permute", "permute"),
    ("collective-broadcast", "broadcast"),
    ("send", "send"),
    ("recv", "recv"),
    ("recv-from-any", "recv"),
];

/// Which part of an operation an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// It is begun, and goes on beside what follows.
    Start,
    /// Its end is waited for.
    Done,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A copy between memories, in this direction.
    Copy(&'static str),
    /// An exchange between devices.
    Collective(&'static str),
    /// What a kernel does.
    Other,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction<'a> {
    /// Its name, without the per cent sign.
    pub name: &'a str,
    /// Its opcode.
    pub opcode: &'a str,
    result: &'a str,
    operands: &'a str,
    attributes: &'a str,
}

/// A shape of an array.
struct Shape<'a> {
    dtype: &'a str,
    bytes: Option<i64>,
    on_host: bool,
}

impl<'a> Instruction<'a> {
    /// The instruction with this text; none of a text of another kind.
    pub fn of(text: &'a str) -> Option<Self> {
        let (name, rest) = text.split_once(" = ")?;
        let result = rest.get(..shape_end(rest))?;
        let rest = rest.get(result.len()..)?.trim_start();
        let (opcode, inside) = rest.split_once('(')?;
        let known =
            !opcode.is_empty() && opcode.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let end = closing(inside).unwrap_or(inside.len());
        let operands = inside.get(..end)?;
        let attributes = inside.get(end..)?;
        known.then_some(Self { name: name.trim_start_matches('%'), opcode, result, operands, attributes })
    }

    /// Which part of an operation it is.
    pub fn part(&self) -> Part {
        match self.opcode {
            "send" | "recv" => Part::Start,
            opcode if opcode.ends_with("-start") => Part::Start,
            opcode if opcode.ends_with("-done") => Part::Done,
            _ => Part::Whole,
        }
    }

    /// The name of the instruction whose end it waits for.
    pub fn awaited(&self) -> Option<&'a str> {
        self.operands.rsplit([' ', ',']).next().map(|name| name.trim_start_matches('%')).filter(|name| !name.is_empty())
    }

    /// What it does. A copy within a device's memory is a kernel's, unless it goes on beside others.
    pub fn work(&self) -> Work {
        let base = |opcode: &'a str| opcode.trim_end_matches("-start").trim_end_matches("-done");
        // What is made to go on beside others is named after what it does.
        let what = if base(self.opcode) == "async" { self.name } else { base(self.opcode) };
        let is =
            |known: &str| what.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']));
        if let Some((_, op)) = COLLECTIVES.iter().rev().find(|(known, _)| is(known)) {
            return Work::Collective(op);
        }
        if base(self.opcode) != "copy" {
            return Work::Other;
        }
        // Both parts of a copy hold a pair of what is written and what is read.
        let pair = match self.part() {
            Part::Start => shapes(self.result).take(2).map(|shape| shape.on_host).collect::<Vec<_>>(),
            Part::Done => shapes(self.operands).take(2).map(|shape| shape.on_host).collect(),
            Part::Whole => {
                let of = |text| shapes(text).next().map(|shape| shape.on_host);
                [of(self.result), of(self.operands)].into_iter().flatten().collect()
            }
        };
        match (pair.as_slice(), self.part()) {
            ([false, true], _) => Work::Copy("HtoD"),
            ([true, false], _) => Work::Copy("DtoH"),
            ([true, true], _) => Work::Copy("HtoH"),
            ([false, false], Part::Start | Part::Done) => Work::Copy("DtoD"),
            _ => Work::Other,
        }
    }

    /// Bytes that a copy moves.
    pub fn copied(&self) -> Option<i64> {
        shapes(self.result).next()?.bytes
    }

    /// Bytes of a collective, the larger of what goes in and what comes out, and the type of the first array.
    pub fn exchanged(&self) -> (Option<i64>, Option<&'a str>) {
        let sum =
            |text: &'a str| shapes(text).map(|shape| shape.bytes).try_fold(0i64, |sum, bytes| sum.checked_add(bytes?));
        // The start of a collective gives what goes in and what comes out.
        let result = if self.part() == Part::Start { None } else { sum(self.result) };
        let bytes = [result, sum(self.operands)].into_iter().flatten().max().filter(|bytes| *bytes > 0);
        (bytes, shapes(self.operands).next().or_else(|| shapes(self.result).next()).map(|shape| shape.dtype))
    }

    /// How many devices take part, where that is said: `replica_groups={{0,1},{2,3}}` and `replica_groups=[4,2]<=[8]`.
    pub fn group_size(&self) -> Option<u32> {
        let (_, groups) = self.attributes.split_once("replica_groups=")?;
        if let Some(shape) = groups.strip_prefix('[') {
            return shape.split_once(']')?.0.rsplit(',').next()?.trim().parse().ok();
        }
        let first = groups.strip_prefix("{{")?.split_once('}')?.0;
        u32::try_from(first.split(',').filter(|id| !id.trim().is_empty()).count()).ok().filter(|size| *size > 0)
    }
}

/// Where the shape at the beginning of a text ends.
fn shape_end(text: &str) -> usize {
    match text.strip_prefix('(') {
        Some(inside) => closing(inside).map_or(text.len(), |end| end + 2),
        None => text.find(' ').unwrap_or(text.len()),
    }
}

/// Where the parenthesis closes that was opened before this text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The arrays in a text of shapes.
fn shapes(text: &str) -> impl Iterator<Item = Shape<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find('[')?;
            let (before, behind) = (rest.get(..at)?, rest.get(at + 1..)?);
            let start = before.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
            let dtype = before.get(start..)?;
            let (dims, after) = behind.split_once(']')?;
            rest = after;
            let Some(bits) = bits(dtype) else { continue };
            let near =
                after.strip_prefix('{').map_or("", |layout| layout.get(..LAYOUT.min(layout.len())).unwrap_or(""));
            let layout = near.split_once('}').map_or("", |(layout, _)| layout);
            let memory = layout.rsplit_once("S(").and_then(|(_, number)| number.split_once(')')?.0.parse::<i64>().ok());
            let elements = dims
                .split(',')
                .filter(|side| !side.is_empty())
                .map(|side| side.trim().trim_start_matches("<=").parse::<i64>().ok().filter(|side| *side >= 0))
                .try_fold(1i64, |product, side| product.checked_mul(side?));
            let bytes = elements.and_then(|n| n.checked_mul(bits)).map(|bits| bits / 8);
            return Some(Shape { dtype, bytes, on_host: memory == Some(HOST) });
        }
    })
}

/// Bits of an element. Source: `PrimitiveType` of `xla_data.proto`.
fn bits(dtype: &str) -> Option<i64> {
    Some(match dtype {
        "s4" | "u4" | "f4e2m1fn" => 4,
        "pred" | "s8" | "u8" => 8,
        _ if dtype.starts_with("f8e") => 8,
        "s16" | "u16" | "f16" | "bf16" => 16,
        "s32" | "u32" | "f32" => 32,
        "s64" | "u64" | "f64" | "c64" => 64,
        "c128" => 128,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const START: &str = "%copy-start.1 = (f32[5,1024]{1,0:T(8,128)S(5)}, f32[5,1024]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(f32[5,1024]{1,0:T(8,128)} %broadcast_add_fusion.2)";
    const DONE: &str = "%copy-done.2 = f32[5,1024]{1,0:T(8,128)} copy-done((f32[5,1024]{1,0:T(8,128)}, f32[5,1024]{1,0:T(8,128)S(5)}, u32[]{:S(2)}) %copy-start.2)";
    const REDUCE: &str = "%all-reduce.3 = bf16[5,1024]{1,0:T(8,128)} all-reduce(bf16[5,1024]{1,0:T(8,128)} %bitcast), channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), to_apply=%region_0.3.clone";

    fn of(text: &str) -> Instruction<'_> {
        Instruction::of(text).unwrap()
    }

    #[test]
    fn copies_of_host_memory_have_direction_and_bytes() {
        let (start, done) = (of(START), of(DONE));
        assert_eq!((start.name, start.part(), start.work()), ("copy-start.1", Part::Start, Work::Copy("DtoH")));
        assert_eq!((done.part(), done.work(), done.awaited()), (Part::Done, Work::Copy("HtoD"), Some("copy-start.2")));
        assert_eq!((start.copied(), done.copied()), (Some(20_480), Some(20_480)));
        let within = START.replace("S(5)", "S(1)");
        assert_eq!(of(&within).work(), Work::Copy("DtoD"), "a copy between memories of the device");
        assert_eq!(of("%copy.1 = f32[8]{0:S(5)} copy(f32[8]{0} %p)").work(), Work::Copy("DtoH"));
        assert_eq!(of("%copy.1 = f32[8]{0} copy(f32[8]{0} %p)").work(), Work::Other, "a kernel's");
    }

    #[test]
    fn collectives_have_their_bytes_and_groups() {
        let reduce = of(REDUCE);
        assert_eq!((reduce.work(), reduce.part()), (Work::Collective("allreduce"), Part::Whole));
        assert_eq!((reduce.exchanged(), reduce.group_size()), ((Some(10_240), Some("bf16")), Some(2)));
        let gather = of(
            "%all-gather-start = (f32[2]{0}, f32[8]{0}) all-gather-start(f32[2]{0} %p), replica_groups={{0,1,2,3},{4,5,6,7}}",
        );
        assert_eq!(
            (gather.work(), gather.part(), gather.group_size()),
            (Work::Collective("allgather"), Part::Start, Some(4))
        );
        let wrapped = of("%reduce-scatter-start.2 = ((f32[8]{0}), f32[2]{0}) async-start(f32[8]{0} %p), calls=%c");
        assert_eq!((wrapped.work(), wrapped.part()), (Work::Collective("reduce_scatter"), Part::Start));
        let fused = of("%all-reduce-scatter.1 = f32[2]{0} fusion(f32[8]{0} %all-reduce.3), kind=kLoop");
        assert_eq!((fused.work(), fused.opcode), (Work::Other, "fusion"), "operands say nothing of what is done");
        assert_eq!(
            of("%recv-done.1 = (f32[2]{0}, token[]) recv-done((f32[2]{0}, u32[], token[]) %recv.1)").work(),
            Work::Collective("recv")
        );
    }

    #[test]
    fn damaged_text_is_no_instruction_or_has_no_sizes() {
        for text in ["", "fusion.3", "%a = ", "%a = (f32[8", "%a = f32[8] ", "x = y z(", "%a = f32[8] Add(f32[8] %b)"] {
            if let Some(instruction) = Instruction::of(text) {
                let _ = (instruction.work(), instruction.part(), instruction.exchanged(), instruction.group_size());
            }
        }
        assert!(Instruction::of("a = b").is_none());
        let large = of("%copy.1 = f32[9223372036854775807,9]{0:S(5)} copy(f32[8]{0} %p)");
        assert_eq!((large.copied(), large.work()), (None, Work::Copy("DtoH")));
    }
}
