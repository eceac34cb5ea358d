//! Names of collectives. `hcom_allReduce__586_0_1` is operation, last digits of the group, number in the group and a
//! constant; `@<group>` may follow.

/// A collective's name taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// The operation, `hcom_allReduce`: what all instances share.
    pub op: &'a str,
    /// Last digits of the group's number.
    pub group: Option<&'a str>,
    /// Number of the instance within the group, the same on every rank.
    pub seq: Option<i64>,
}

impl<'a> Name<'a> {
    /// Takes a name apart; one of another shape is all operation.
    pub fn parse(name: &'a str) -> Self {
        let bare = name.split('@').next().unwrap_or(name);
        let Some((op, rest)) = bare.split_once("__") else {
            return Self { op: bare.trim_end_matches('_'), group: None, seq: None };
        };
        let mut parts = rest.split('_');
        let group = parts.next().filter(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
        let seq = parts.next().and_then(|seq| seq.parse().ok()).filter(|_| group.is_some());
        Self { op, group, seq }
    }
}

/// Bytes of an element of a data type as the communication library spells it; `None` for one that is not known.
pub(super) fn element_bytes(dtype: &str) -> Option<i64> {
    let bits: String = dtype.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    match dtype.to_ascii_uppercase().as_str() {
        "BFP16" | "BF16" | "BFLOAT16" => Some(2),
        kind if ["INT", "UINT", "FP", "FLOAT"].iter().any(|prefix| kind.starts_with(prefix)) => {
            bits.parse::<i64>().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64 | 128)).map(|bits| bits / 8)
        }
        _ => None,
    }
}
