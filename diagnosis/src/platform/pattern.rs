//! Name patterns: exact, prefix, contains, glob and regex, in order of priority.
//!
//! A kernel name is looked at in several forms, because exports differ: as written, and as the bare function name
//! without return type, namespaces, template arguments and mangling. Literal patterns are compared directly, and only
//! few patterns need the regex engine, so a name costs microseconds; it is asked once per distinct name.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// Bytes of a name that are looked at. The functor that tells elementwise kernels of torch apart lies within the first
/// 500 bytes; names of a megabyte exist in hostile traces only.
const MAX_NAME: usize = 4096;

/// Size limit of one compiled regex in bytes, so that a pack cannot fill memory with `(a{999}){999}`.
const REGEX_LIMIT: usize = 1 << 20;

/// A name in the forms that patterns look at.
pub(super) struct Name<'a> {
    full: &'a str,
    /// `full` and the shorter forms.
    forms: Vec<&'a str>,
    lower: String,
}

impl<'a> Name<'a> {
    /// Prepares the forms of a kernel, op type or API name.
    pub fn new(name: &'a str) -> Self {
        let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or(name).trim();
        // rocprof appends the kernel descriptor's suffix to the symbol.
        let full = name.trim_end_matches(" [clone .kd]").trim_end_matches(".kd");
        let mut forms = vec![full];
        match full.strip_prefix("_Z") {
            Some(mangled) => forms.extend(mangled_base(mangled)),
            None => forms.extend(plain_bases(full)),
        }
        Self { full, forms, lower: full.to_ascii_lowercase() }
    }

    /// The bare function name, or the whole name where there is no shorter one.
    pub fn base(&self) -> &'a str {
        self.forms.last().copied().unwrap_or(self.full)
    }
}

/// The last identifier of an Itanium-mangled symbol without its template arguments.
fn mangled_base(mangled: &str) -> Option<&str> {
    let mut rest = mangled.strip_prefix('N').unwrap_or(mangled);
    let mut base = None;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some(Ok(len)) = rest.get(..digits).map(str::parse::<usize>) else { return base };
        let Some(identifier) = rest.get(digits..digits.saturating_add(len)) else { return base };
        base = Some(identifier);
        rest = rest.get(digits.saturating_add(len)..).unwrap_or("");
    }
}

/// Shorter forms of a demangled name: the function of a C++ signature, the op type of `aclnn<Api>_<OpType>_<Kernel>`,
/// the node of a graph path such as `Default/network/MatMul-op123`.
fn plain_bases(full: &str) -> Vec<&str> {
    if let Some(api) = full.strip_prefix("aclnn") {
        return api.split('_').skip(1).collect();
    }
    if full.contains('/') && !full.contains(['(', '<', ' ']) {
        let node = full.rsplit('/').next().unwrap_or(full);
        return vec![node.rsplit_once("-op").map_or(node, |(op, _)| op)];
    }
    let anonymous = ["(anonymous namespace)::", "<unnamed>::"];
    let mut head = full.strip_prefix("void ").unwrap_or(full);
    loop {
        let end = head.find(['<', '(']).unwrap_or(head.len());
        let tail = head.get(end..).unwrap_or("");
        match anonymous.iter().find_map(|a| tail.strip_prefix(a)) {
            Some(rest) => head = rest,
            None => {
                let path = head.get(..end).unwrap_or(head).trim();
                let base = path.rsplit("::").next().unwrap_or(path);
                return vec![base.rsplit(' ').next().unwrap_or(base)];
            }
        }
    }
}

/// An entry of a pack that gives names to patterns.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PatternEntry {
    /// What a matching name is: an operator, a call kind or an activity label.
    pub name: String,
    /// The operators that a fused kernel stands for.
    #[serde(default)]
    pub slots: Vec<String>,
    /// Higher goes first; entries of equal priority go in the order of the file, user packs first.
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub ignore_case: bool,
    /// Equal to a form of the name.
    #[serde(default)]
    pub exact: Vec<String>,
    /// A form of the name starts with it.
    #[serde(default)]
    pub prefix: Vec<String>,
    /// Occurs anywhere in the name as written.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Equal to a form of the name, `*` standing for any text.
    #[serde(default)]
    pub glob: Vec<String>,
    /// Matches the whole name as written.
    #[serde(default)]
    pub regex: Vec<String>,
    /// Where the entry comes from, if elsewhere than the rest of its pack.
    #[serde(default)]
    #[allow(dead_code)] // read by people, in the pack; required to be text here
    pub source: Option<String>,
}

/// Compiles a regex that must match a whole text.
pub(super) fn anchored(pattern: &str, ignore_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(&format!("^(?s:{pattern})$"))
        .case_insensitive(ignore_case)
        .size_limit(REGEX_LIMIT)
        .build()
        .map_err(|error| format!("regex `{pattern}` is not usable: {error}; correct it or make it smaller"))
}

#[derive(Clone, Debug)]
enum Test {
    Exact(String),
    Prefix(String),
    Contains(String),
    /// The literal pieces between the stars.
    Glob(Vec<String>),
    Regex(Regex),
}

impl Test {
    fn matches(&self, full: &str, forms: &[&str]) -> bool {
        match self {
            Self::Exact(text) => forms.contains(&text.as_str()),
            Self::Prefix(text) => forms.iter().any(|form| form.starts_with(text)),
            Self::Contains(text) => full.contains(text),
            Self::Glob(pieces) => forms.iter().any(|form| glob(pieces, form)),
            Self::Regex(regex) => regex.is_match(full),
        }
    }
}

/// Whether `text` is the pieces in order with anything between them. Taking each piece at its first place is right for
/// all but the last, which must end the text.
fn glob(pieces: &[String], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return pieces.first().is_some_and(|only| only == text) };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        match rest.split_once(piece.as_str()) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

#[derive(Clone, Debug)]
struct Pattern {
    test: Test,
    ignore_case: bool,
    priority: i32,
    target: usize,
}

/// Patterns with what they stand for.
#[derive(Clone, Debug)]
pub(super) struct PatternTable<T> {
    targets: Vec<T>,
    patterns: Vec<Pattern>,
}

impl<T> Default for PatternTable<T> {
    fn default() -> Self {
        Self { targets: Vec::new(), patterns: Vec::new() }
    }
}

impl<T> PatternTable<T> {
    /// Adds the patterns of an entry; those added earlier win among equal priorities.
    pub fn add(&mut self, entry: &PatternEntry, target: T) -> Result<(), String> {
        let texts = |list: &[String]| -> Vec<String> {
            list.iter().map(|t| if entry.ignore_case { t.to_ascii_lowercase() } else { t.clone() }).collect()
        };
        let mut tests: Vec<Test> = texts(&entry.exact).into_iter().map(Test::Exact).collect();
        tests.extend(texts(&entry.prefix).into_iter().map(Test::Prefix));
        tests.extend(texts(&entry.contains).into_iter().map(Test::Contains));
        tests.extend(texts(&entry.glob).iter().map(|g| Test::Glob(g.split('*').map(str::to_owned).collect())));
        for pattern in &entry.regex {
            tests.push(Test::Regex(anchored(pattern, entry.ignore_case)?));
        }
        if tests.is_empty() {
            return Err("no pattern; give at least one of exact, prefix, contains, glob, regex".into());
        }
        let target_index = self.targets.len();
        self.targets.push(target);
        self.patterns.extend(tests.into_iter().map(|test| Pattern {
            test,
            ignore_case: entry.ignore_case,
            priority: entry.priority,
            target: target_index,
        }));
        Ok(())
    }

    /// Puts the patterns in order of priority; called once after the last [`Self::add`].
    pub fn finish(&mut self) {
        self.patterns.sort_by_key(|p| std::cmp::Reverse(p.priority));
    }

    /// What the first matching pattern stands for.
    pub fn find(&self, name: &Name<'_>) -> Option<&T> {
        let offset = |form: &&str| form.as_ptr() as usize - name.full.as_ptr() as usize;
        let lower: Vec<&str> =
            name.forms.iter().filter_map(|form| name.lower.get(offset(form)..offset(form) + form.len())).collect();
        let hit = self.patterns.iter().find(|p| match p.ignore_case {
            true => p.test.matches(&name.lower, &lower),
            false => p.test.matches(name.full, &name.forms),
        })?;
        self.targets.get(hit.target)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bases_of_every_spelling() {
        for (name, base) in [
            ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "rotary_embedding_kernel"),
            ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 4>(float*)", "CatArrayBatchedCopy"),
            ("void <unnamed>::softmax_warp_forward<float, (int)6>(T2 *)", "softmax_warp_forward"),
            ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64EEEvPT0_", "add_rmsnorm_quant_kernel"),
            (
                "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_2E",
                "kernel_grouped_conv_fwd_xdl_cshuffle_v3",
            ),
            ("aclnnMatmul_MatMulCommon_MatMulV3", "MatMulV3"),
            ("Default/network-Net/decoder/MatMul-op123", "MatMul"),
            ("mul_mat_q<(ggml_type)2>(char const*) [clone .kd]", "mul_mat_q"),
            ("nvjet_tst_64x8_64x16_2x1_v_bz_TNT", "nvjet_tst_64x8_64x16_2x1_v_bz_TNT"),
            ("", ""),
        ] {
            assert_eq!(Name::new(name).base(), base, "{name}");
        }
    }

    fn entry(glob: &str) -> PatternEntry {
        toml::from_str(&format!("name = 'x'\nglob = ['{glob}']")).unwrap()
    }

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("*gemm*", "ampere_gemm_64", true),
            ("gemm*", "ampere_gemm", false),
            ("*gemm", "gemm_gemm", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*bc*c", "abc", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*", "", true),
        ] {
            let mut table = PatternTable::default();
            table.add(&entry(pattern), ()).unwrap();
            assert_eq!(table.find(&Name::new(text)).is_some(), expected, "{pattern} on {text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_name(text in "\\PC{0,200}") {
            let name = Name::new(&text);
            prop_assert!(text.contains(name.base()));
        }

        #[test]
        fn mangled_lengths_never_overrun(lengths in proptest::collection::vec(any::<u64>(), 0..6)) {
            let text = lengths.iter().fold(String::from("_ZN"), |s, n| format!("{s}{n}abc"));
            Name::new(&text);
        }

        #[test]
        fn a_glob_of_its_own_pieces_matches(pieces in proptest::collection::vec("[a-c]{0,3}", 1..6), fill in "[a-c]{0,3}") {
            let text = pieces.join(&fill);
            let owned: Vec<String> = pieces.clone();
            prop_assert!(owned.len() == 1 || glob(&owned, &text));
        }
    }
}
