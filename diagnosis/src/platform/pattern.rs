//! Name patterns: exact, prefix, contains, glob, regex, words and functor, in order of priority.
//!
//! Literal patterns are compared directly, and only few patterns need the regex engine, so a name costs microseconds; it
//! is asked once per distinct name.

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::literals::{Literals, Needed};
pub(super) use super::name::Name;

/// Size limit of one compiled regex in bytes, so that a pack cannot fill memory with `(a{999}){999}`.
const REGEX_LIMIT: usize = 1 << 20;

/// Kernels of torch that are one symbol for many functors.
const FUNCTOR_KERNELS: [&str; 3] = ["elementwise", "reduce_kernel", "multi_tensor_apply"];

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
    /// Terms about the words of the bare function name, of which all must hold; see [`Term`].
    #[serde(default)]
    pub words: Vec<String>,
    /// Occurs in the name of a kernel of torch that stands for many functors, and nowhere else.
    #[serde(default)]
    pub functor: Vec<String>,
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
    Words(Vec<Term>),
    Functor(String),
}

impl Test {
    /// What every name that it matches holds.
    fn needs(&self) -> Needed<'_> {
        match self {
            Self::Exact(text) | Self::Prefix(text) | Self::Contains(text) | Self::Functor(text) => {
                Needed::Written(text)
            }
            Self::Glob(pieces) => {
                pieces.iter().max_by_key(|piece| piece.len()).map_or(Needed::Nothing, |piece| Needed::Written(piece))
            }
            Self::Regex(_) => Needed::Nothing,
            Self::Words(terms) => {
                let present = terms.iter().filter(|term| !term.absent).flat_map(|term| &term.pieces);
                present.max_by_key(|piece| piece.len()).map_or(Needed::Nothing, |piece| Needed::Worded(piece))
            }
        }
    }

    fn matches(&self, full: &str, forms: &[&str], words: &[String]) -> bool {
        match self {
            Self::Exact(text) => forms.contains(&text.as_str()),
            Self::Prefix(text) => forms.iter().any(|form| form.starts_with(text)),
            Self::Contains(text) => full.contains(text),
            Self::Glob(pieces) => forms.iter().any(|form| glob(pieces, form)),
            Self::Regex(regex) => regex.is_match(full),
            Self::Words(terms) => words.iter().any(|text| terms.iter().all(|term| term.holds(text))),
            Self::Functor(text) => full.contains(text) && FUNCTOR_KERNELS.iter().any(|kernel| full.contains(kernel)),
        }
    }
}

/// What a bare name must hold, or must not: whole words one after the other, `*` for any text, `^` for the first word.
/// `!quant*` holds where no word begins with `quant`.
#[derive(Clone, Debug)]
struct Term {
    /// Texts in their order, with a `_` where a word must begin or end.
    pieces: Vec<String>,
    first: bool,
    absent: bool,
}

impl Term {
    fn new(text: &str) -> Self {
        let (absent, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (first, text) = text.strip_prefix('^').map_or((false, text), |rest| (true, rest));
        let mut pieces: Vec<String> = text.split('*').map(str::to_owned).collect();
        if let Some(piece) = pieces.first_mut().filter(|piece| !piece.is_empty()) {
            piece.insert(0, '_');
        }
        if let Some(piece) = pieces.last_mut().filter(|piece| !piece.is_empty()) {
            piece.push('_');
        }
        Self { pieces, first, absent }
    }

    fn holds(&self, words: &str) -> bool {
        let begins = !self.first || self.pieces.first().is_some_and(|piece| words.starts_with(piece.as_str()));
        let mut rest = Some(words);
        for piece in &self.pieces {
            rest = rest.and_then(|text| text.split_once(piece.as_str())).map(|(_, after)| after);
        }
        (begins && rest.is_some()) != self.absent
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
    /// Which of them a name can match, once all are there.
    literals: Option<Literals>,
}

impl<T> Default for PatternTable<T> {
    fn default() -> Self {
        Self { targets: Vec::new(), patterns: Vec::new(), literals: None }
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
        tests.extend(entry.words.iter().map(|text| Test::Words(text.split_whitespace().map(Term::new).collect())));
        tests.extend(entry.functor.iter().cloned().map(Test::Functor));
        if tests.is_empty() {
            return Err("no pattern; give at least one of exact, prefix, contains, glob, regex, words, functor".into());
        }
        self.literals = None;
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
        self.literals = Literals::new(self.patterns.iter().map(|pattern| pattern.test.needs()));
    }

    /// What the first matching pattern stands for.
    pub fn find(&self, name: &Name<'_>) -> Option<&T> {
        let possible = self.literals.as_ref().map(|literals| literals.possible(name));
        let is_possible = |i: usize| possible.as_ref().is_none_or(|possible| possible.get(i).is_none_or(|is| *is));
        let matches = |p: &Pattern| match p.ignore_case {
            true => p.test.matches(name.lower(), &name.lower_forms(), name.words()),
            false => p.test.matches(name.full(), name.forms(), name.words()),
        };
        let (_, hit) = self.patterns.iter().enumerate().find(|(i, p)| is_possible(*i) && matches(p))?;
        self.targets.get(hit.target)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

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

    /// What a name must hold is only a way to ask fewer patterns.
    #[test]
    fn the_search_for_literals_loses_no_match() {
        let packs = crate::platform::Packs::embedded().unwrap();
        let names = [
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>(int)",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "nvjet_tst_128x64_64x9_1x2_h_bz_TNT",
            "_ZN7cutlass13device_kernelIN5flash20FlashAttnFwdSm90EEEvT_",
            "aclnnMatmul_MatMulV3Common_MatMulV3",
            "Cijk_Alik_Bljk_HHS_BH_MT128x128x32_SE.kd",
            "FLASH_fwd_KERNEL",
            "somebody's own",
            "",
        ];
        let table = &packs.0.ops;
        let mut slow = table.clone();
        slow.literals = None;
        let op = |table: &PatternTable<crate::platform::OpMatch>, name: &str| {
            table.find(&Name::new(name)).map(|op| format!("{op:?}"))
        };
        for name in names {
            assert_eq!(op(table, name), op(&slow, name), "{name}");
        }
        // Every text of a pattern is itself a name near which something matches.
        for pattern in &table.patterns {
            if let Needed::Written(text) | Needed::Worded(text) = pattern.test.needs() {
                for name in [text.to_owned(), format!("a_{text}_b"), text.to_ascii_uppercase()] {
                    assert_eq!(op(table, &name), op(&slow, &name), "{name}");
                }
            }
        }
        // Hardly a pattern is asked of a name that none knows.
        let asked = table.literals.as_ref().unwrap().possible(&Name::new("kern_17_of_a_stranger"));
        let asked = asked.iter().filter(|asked| **asked).count();
        assert!(asked * 10 < table.patterns.len(), "{asked} of {}", table.patterns.len());
    }

    #[test]
    fn words_are_looked_for_in_the_bare_name_only() {
        for (pattern, name, expected) in [
            ("rms_norm", "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", true),
            ("rms_norm", "flashinfer::norm::FusedAddRMSNormKernel", true),
            ("gemm*", "void fbgemm_gpu::permute_2D_data_kernel<true>(int)", false),
            ("gemm*", "void foo<gemm_traits>(gemm_params)", false),
            (
                "flash_attn_fwd*",
                "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<int>>>(P)",
                true,
            ),
            ("rope", "_property_kernel", false),
            ("rope*", "fused_ropes", true),
            ("*rope", "my_mrope_kernel", true),
            ("^tile*", "big_tile_kernel", false),
            ("^tile*", "tile_kernel", true),
            ("silu* !quant*", "silu_and_mul_kernel", true),
            ("silu* !quant*", "silu_and_mul_quantize", false),
            ("a*c", "a_b_c", true),
        ] {
            let mut table = PatternTable::default();
            table.add(&toml::from_str(&format!("name = 'x'\nwords = ['{pattern}']")).unwrap(), ()).unwrap();
            assert_eq!(table.find(&Name::new(name)).is_some(), expected, "{pattern} on {name}");
        }
    }

    proptest! {
        #[test]
        fn a_glob_of_its_own_pieces_matches(pieces in proptest::collection::vec("[a-c]{0,3}", 1..6), fill in "[a-c]{0,3}") {
            let text = pieces.join(&fill);
            let owned: Vec<String> = pieces.clone();
            prop_assert!(owned.len() == 1 || glob(&owned, &text));
        }
    }
}
