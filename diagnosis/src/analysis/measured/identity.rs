//! What of a kernel's name is the same in every tool. Demanglers disagree on namespaces without name, lambdas, integer
//! arguments and parameter lists; operator packages add hashes. What tells two kernels apart, the function, its functor and
//! its types, they all write.

use std::fmt::Write;

/// Characters of a name that are looked at.
const LONGEST: usize = 16 << 10;
/// Words that some tools write and others do not.
const NOISE: [&str; 9] =
    ["void", "const", "lambda", "instance", "operator", "anonymous", "namespace", "unnamed", "static"];
/// Ends that Ascend's compiler gives the two halves of a kernel that runs on both kinds of cores.
const HALVES: [&str; 2] = ["_mix_aic", "_mix_aiv"];
/// Length of the hash in the name of an Ascend operator's binary.
const HASH: usize = 32;

/// A name without its spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    /// Everything that tells it from other kernels.
    pub whole: String,
    /// The function alone.
    pub function: String,
}

impl Identity {
    /// Whether nothing but the function is said, as tools do that are asked for short names.
    pub fn is_short(&self) -> bool {
        self.whole == self.function
    }

    /// Reads a name.
    pub fn of(name: &str) -> Self {
        let name = name.get(..name.floor_char_boundary(LONGEST)).unwrap_or(name).trim();
        if name.contains(['<', '(', ' ']) || name.contains("::") {
            return demangled(name);
        }
        let function = operator(name);
        Self { whole: function.clone(), function }
    }
}

/// The name of an operator's binary without hash, variant and half: `Add_ab1b…8b_0_mix_aic`. An `aclnn` call names the
/// operator last: `aclnnAdd_AddAiCore_Add`.
fn operator(name: &str) -> String {
    let name = HALVES.iter().find_map(|half| name.strip_suffix(half)).unwrap_or(name);
    let is_hash = |word: &str| word.len() == HASH && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words: Vec<&str> = name.split('_').collect();
    let hash = words.iter().position(|word| is_hash(word)).filter(|at| *at > 0);
    let name = hash.and_then(|at| words.get(..at)).map_or_else(|| name.to_owned(), |words| words.join("_"));
    let last = name.strip_prefix("aclnn").and_then(|call| call.rsplit('_').next());
    last.unwrap_or(&name).to_ascii_lowercase()
}

/// The end of the group that `open` begins, in bytes; of one that is never closed, the end of the text.
fn group(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return at + 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

fn demangled(name: &str) -> Identity {
    let (mut whole, mut function) = (String::new(), String::new());
    let (mut depth, mut after_lambda) = (0usize, false);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if c == '(' {
            // The parameter of a lambda is the type that a dispatched kernel is made for; its number tells it from the next.
            let told = std::mem::take(&mut after_lambda) || rest.starts_with("(instance ");
            // The parameters of the kernel itself are not resolved by half of the tools.
            if !told && depth == 0 && !rest.starts_with("(anonymous") {
                break;
            }
            rest = if told { &rest[1..] } else { rest.get(group(rest)..).unwrap_or_default() };
            continue;
        }
        if !(c.is_alphanumeric() || c == '_') {
            depth = match c {
                '<' => depth + 1,
                '>' => depth.saturating_sub(1),
                _ => depth,
            };
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        after_lambda = word == "lambda";
        let is_qualifier = after.starts_with("::");
        if is_qualifier || NOISE.contains(&word) {
            continue;
        }
        let word = match word {
            "true" => "1".to_owned(),
            "false" => "0".to_owned(),
            digits if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                digits.trim_end_matches(['u', 'l', 'U', 'L']).to_owned()
            }
            word => word.to_ascii_lowercase(),
        };
        if depth == 0 {
            function.clone_from(&word);
        }
        let gap = if whole.is_empty() { "" } else { " " };
        let _ = write!(whole, "{gap}{word}");
    }
    Identity { whole, function }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_demanglers_write_one_kernel() {
        for (a, b) in [
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<int>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<int>, std::array<char*, 3ul>)",
                "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<int>, at::detail::Array<char *, (int)3>>(int, T2, T3)",
            ),
            (
                "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#4}::operator()() const::{lambda(long)#1}>(int)",
                "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 4)]::operator ()() const::[lambda(long) (instance 1)]>(int)",
            ),
            (
                "void (anonymous namespace)::elementwise_kernel_with_index<int, true>(int)",
                "void <unnamed>::elementwise_kernel_with_index<int, (bool)1>(T1)",
            ),
            ("aclnnAdd_AddAiCore_Add", "Add_ab1b6750d7f510985325b603cb06dc8b_0_mix_aic"),
        ] {
            assert_eq!(Identity::of(a), Identity::of(b), "{a}");
        }
    }

    #[test]
    fn what_tells_kernels_apart_stays() {
        let copy = |number: u32, ty: &str| {
            Identity::of(&format!(
                "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() const::{{lambda()#{number}}}::operator()() const::{{lambda({ty})#1}}>(int)"
            ))
        };
        assert_ne!(copy(3, "int"), copy(4, "long"));
        assert_ne!(copy(3, "int"), copy(3, "float"));
        let add = |ty: &str| Identity::of(&format!("void at::native::foo<at::native::CUDAFunctor_add<{ty}>>(int)"));
        assert_ne!(add("int"), add("c10::Half"));
        assert_eq!(add("int").function, "foo");
        let short = Identity::of("foo");
        assert!(short.is_short() && short.function == add("int").function && !add("int").is_short());
    }

    #[test]
    fn hostile_names_end() {
        for name in ["", "(", "<(((", "a::", "lambda(", &"(<".repeat(20_000), &"::é(".repeat(9_000)] {
            Identity::of(name);
        }
    }
}
