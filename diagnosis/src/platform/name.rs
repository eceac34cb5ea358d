//! A kernel name in the forms that patterns look at.
//!
//! Exports differ: the name as written, the bare function name without return type, namespaces, template arguments and
//! mangling, and that name as words. A wrapper such as `cutlass::device_kernel<flash::FlashAttnFwdSm90<…>>` says nothing
//! itself: what it wraps counts too.

/// Bytes of a name that are looked at. The functor that tells elementwise kernels of torch apart lies within the first
/// 500 bytes; names of a megabyte exist in hostile traces only.
const MAX_NAME: usize = 4096;

/// Names of no namespace that stand like one.
const ANONYMOUS: [&str; 3] = ["(anonymous namespace)", "<unnamed>", "{anonymous}"];

/// Function templates that run what their first argument names.
const WRAPPERS: [&str; 14] = [
    "Kernel",
    "Kernel2",
    "device_kernel",
    "kentry",
    "trampoline_kernel",
    "kernel_wrapper",
    "cutlass_kernel",
    "enable_sm80_or_later",
    "enable_sm90",
    "enable_sm90a",
    "enable_sm90_or_later",
    "enable_sm100_or_later",
    "VectorizedElementwiseKernel",
    "UnrolledElementwiseKernel",
];

/// Wrappers inside wrappers that are looked through.
const MAX_WRAPPED: usize = 4;

/// A name in the forms that patterns look at.
pub(super) struct Name<'a> {
    full: &'a str,
    /// `full` and the shorter forms.
    forms: Vec<&'a str>,
    lower: String,
    words: Vec<String>,
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
        let shorter = forms.get(1..).filter(|shorter| !shorter.is_empty()).unwrap_or(&forms);
        let words = shorter.iter().map(|form| words(form)).collect();
        Self { full, forms, lower: full.to_ascii_lowercase(), words }
    }

    /// As written, without suffixes of exporters.
    pub fn full(&self) -> &'a str {
        self.full
    }

    /// As written, and the shorter forms.
    pub fn forms(&self) -> &[&'a str] {
        &self.forms
    }

    /// As written, in small letters.
    pub fn lower(&self) -> &str {
        &self.lower
    }

    /// The forms in small letters.
    pub fn lower_forms(&self) -> Vec<&str> {
        let offset = |form: &&str| form.as_ptr() as usize - self.full.as_ptr() as usize;
        self.forms.iter().filter_map(|form| self.lower.get(offset(form)..offset(form) + form.len())).collect()
    }

    /// The words of the shorter forms, each between `_`.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The bare function name, or the whole name where there is no shorter one.
    pub fn base(&self) -> &'a str {
        // Of `aclnn<Api>_<OpType>_<Kernel>` the kernel, of a wrapper itself.
        let base = if self.full.starts_with("aclnn") { self.forms.last() } else { self.forms.get(1) };
        base.copied().unwrap_or(self.full)
    }
}

/// `FusedAddRMSNormKernel` → `_fused_add_rms_norm_kernel_`.
fn words(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    out.push('_');
    let mut chars = name.chars().peekable();
    let mut before = '_';
    while let Some(c) = chars.next() {
        if !c.is_alphanumeric() {
            if !out.ends_with('_') {
                out.push('_');
            }
        } else {
            let acronym_ends = before.is_uppercase() && chars.peek().is_some_and(|next| next.is_lowercase());
            let begins = c.is_uppercase() && (before.is_lowercase() || before.is_numeric() || acronym_ends);
            if begins && !out.ends_with('_') {
                out.push('_');
            }
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    if !out.ends_with('_') {
        out.push('_');
    }
    out
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

/// Shorter forms of a demangled name: the function of a C++ signature and what it wraps, the op type of
/// `aclnn<Api>_<OpType>_<Kernel>`, the node of a graph path such as `Default/network/MatMul-op123`.
fn plain_bases(full: &str) -> Vec<&str> {
    if let Some(api) = full.strip_prefix("aclnn") {
        return api.split('_').skip(1).collect();
    }
    if full.contains('/') && !full.contains(['(', '<', ' ']) {
        let node = full.rsplit('/').next().unwrap_or(full);
        return vec![node.rsplit_once("-op").map_or(node, |(op, _)| op)];
    }
    let (mut base, mut arguments) = function(full, false);
    let mut bases = vec![base];
    while bases.len() <= MAX_WRAPPED && WRAPPERS.contains(&base) {
        let Some(wrapped) = arguments else { break };
        // A number before the type says how many elements a thread has.
        let wrapped = wrapped.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',' || c == ' ');
        (base, arguments) = function(wrapped, true);
        bases.push(base);
    }
    bases
}

/// The bare name of the function or, inside template arguments, of the first type, with what follows its `<`.
fn function(text: &str, argument: bool) -> (&str, Option<&str>) {
    let (mut angles, mut round) = (0_usize, 0_usize);
    let (mut start, mut end) = (0, None);
    let mut skip_to = 0;
    let mut last = text.len();
    for (i, c) in text.char_indices() {
        if i < skip_to {
            continue;
        }
        if angles == 0 && round == 0 {
            let rest = text.get(i..).unwrap_or("");
            if let Some(anonymous) = ANONYMOUS.iter().find(|name| rest.starts_with(**name)) {
                skip_to = i + anonymous.len();
                continue;
            }
            match c {
                '(' => {
                    last = i;
                    break;
                }
                '<' => {
                    end.get_or_insert(i);
                    angles = 1;
                }
                ',' | '>' if argument => {
                    last = i;
                    break;
                }
                ':' | ' ' => (start, end) = (i + 1, None),
                _ => {}
            }
        } else {
            match c {
                '(' => round += 1,
                ')' => round = round.saturating_sub(1),
                '<' if round == 0 => angles += 1,
                '>' if round == 0 => angles = angles.saturating_sub(1),
                _ => {}
            }
        }
    }
    let base = text.get(start..end.unwrap_or(last)).unwrap_or(text).trim();
    (base, end.and_then(|end| text.get(end + 1..)))
}

#[cfg(test)]
mod tests {
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
            (
                "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(int)",
                "fused_add_rms_norm_kernel",
            ),
            ("", ""),
        ] {
            assert_eq!(Name::new(name).base(), base, "{name}");
        }
    }

    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("FusedAddRMSNormKernel", "_fused_add_rms_norm_kernel_"),
            ("fusedQKNormRopeKernel", "_fused_qk_norm_rope_kernel_"),
            ("_fwd_kernel_stage1", "_fwd_kernel_stage1_"),
            ("kInt8VectorQuant", "_k_int8_vector_quant_"),
            ("", "_"),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn a_wrapper_is_looked_through() {
        let name = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<cute::tuple<int>>>>(T1::Params)";
        assert_eq!(Name::new(name).forms().last(), Some(&"FlashAttnFwdSm90"));
        let hostile = "Kernel<".repeat(500);
        assert!(Name::new(&hostile).forms().len() <= MAX_WRAPPED + 2);
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
    }
}
