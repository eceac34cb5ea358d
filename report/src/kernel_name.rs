//! Short forms of kernel names that keep what tells two kernels apart: the functor, the tile, the data type. A general
//! elementwise kernel carries them deep inside its template arguments, under namespaces, wrappers and parameter lists that
//! say nothing. The JSON report has the whole name.

use super::text::NAME;

/// Characters of a name that are looked at: a longer one is cut here before anything else.
const LONGEST: usize = 4096;
/// Characters kept free for the mark that tells equal short forms apart.
const MARK: usize = 6;
/// Characters that the end of a name without structure keeps.
const TAIL: usize = 20;
/// End of every cuBLAS kernel.
const LIBRARY: &str = "_kernel__5x_cublas";
/// Template arguments that tell only how many operands there are, or where they lie.
const OPERANDS: [&str; 3] = ["array<char", "Array<char", "TrivialOffsetCalculator<"];
/// Templates that only carry their argument.
const WRAPPERS: [&str; 2] = ["gpu_kernel_impl_nocast", "gpu_kernel_impl"];

/// Short forms of `names`, in their order. Different names whose short forms agree are marked with a hash of the whole name,
/// which is the same in every report.
pub fn short_all(names: &[&str]) -> Vec<String> {
    let plain: Vec<String> = names.iter().map(|name| short(name)).collect();
    let twice = |i: usize, form: &String| {
        plain
            .iter()
            .zip(names)
            .enumerate()
            .any(|(j, (other, name))| i != j && form == other && names.get(i).is_some_and(|own| own != name))
    };
    let mark = |(i, form): (usize, &String)| match names.get(i).filter(|_| twice(i, form)) {
        Some(name) => format!("{form} #{:04x}", hash(name)),
        None => form.clone(),
    };
    plain.iter().enumerate().map(mark).collect()
}

/// The short form of a kernel's name; a name that fits stays as it is.
pub fn short(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    let name = name.char_indices().nth(LONGEST).and_then(|(end, _)| name.get(..end)).unwrap_or(name);
    let form = match name.strip_prefix("_Z") {
        Some(mangled) => itanium(mangled),
        None if name.contains(['<', '(']) => template(name),
        None => name.trim_end_matches(LIBRARY).to_owned(),
    };
    let form = if form.is_empty() { name.to_owned() } else { form };
    let most = NAME - MARK;
    match form.chars().count() {
        0..=NAME if form.chars().count() <= most => form,
        _ if form.contains('<') => {
            format!("{}…", form.chars().take(most - 1).collect::<String>().trim_end_matches([',', ' ']))
        }
        _ => words(&form, most),
    }
}

/// FNV-1a, folded to 16 bits: enough to tell the rows of one table apart.
fn hash(name: &str) -> u16 {
    let full = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    (full >> 16) as u16 ^ full as u16
}

/// Head and tail of a name of words joined by underscores, both cut between words where there are any.
fn words(name: &str, most: usize) -> String {
    let length = name.chars().count();
    let head: String = name.chars().take(most - TAIL - 1).collect();
    let tail: String = name.chars().skip(length.saturating_sub(TAIL)).collect();
    let head = head.rsplit_once('_').map_or(head.as_str(), |(whole, _)| whole);
    let tail = tail.split_once('_').map_or(tail.as_str(), |(_, whole)| whole);
    format!("{head}…{tail}")
}

/// An open template: its name, the arguments that are complete, and the one being read.
#[derive(Default)]
struct Frame {
    head: String,
    args: Vec<String>,
    now: String,
}

impl Frame {
    fn argument(&mut self) {
        let argument = std::mem::take(&mut self.now);
        let argument = argument.trim().trim_start_matches("void ").trim();
        if !argument.is_empty() && !OPERANDS.iter().any(|o| argument.starts_with(o)) {
            self.args.push(argument.to_owned());
        }
    }

    /// `name<a, b ×3>`: runs of three and more equal arguments are counted.
    fn close(mut self) -> String {
        self.argument();
        if let ([only], true) = (self.args.as_slice(), WRAPPERS.contains(&self.head.trim_start_matches("void "))) {
            return only.clone();
        }
        let runs = self.args.chunk_by(|a, b| a == b).flat_map(|run| match run {
            [first, _, _, ..] => vec![format!("{first} ×{}", run.len())],
            few => few.to_vec(),
        });
        format!("{}<{}>", self.head, runs.collect::<Vec<_>>().join(", "))
    }
}

/// A demangled C++ name without namespaces, parameter lists, casts and the paths of lambdas; of a lambda the types of its
/// parameters stay, because that is where the data type of a dispatched kernel stands.
fn template(name: &str) -> String {
    const NOTHING: [&str; 3] = ["(anonymous namespace)::", "<unnamed>::", "{anonymous}::"];
    let mut open: Vec<Frame> = Vec::new();
    let mut frame = Frame::default();
    let mut rest = name.strip_prefix("void ").unwrap_or(name);
    // What a template returns where it holds is no part of its name.
    if let Some((_, named)) =
        rest.strip_prefix("std::enable_if<").and_then(|condition| condition.split_once(">::type "))
    {
        rest = named;
    }
    let mut around = "";
    while let Some(c) = rest.chars().next() {
        if let Some(after) = NOTHING.iter().find_map(|n| rest.strip_prefix(n)) {
            rest = after;
        } else if let Some((types, after)) = lambdas(rest) {
            frame.now += &types;
            rest = after;
        } else if c == '(' {
            rest = group(rest).1;
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let qualifies = after.starts_with("::") && !after.starts_with("::{") && !after.starts_with("::[");
            rest = if qualifies { &after[2..] } else { after };
            if qualifies {
                around = word;
            } else {
                // `gemvx::kernel`: the word alone would be said of any kernel.
                if word == "kernel" && !around.is_empty() {
                    frame.now += around;
                    frame.now += "::";
                }
                frame.now += word;
                around = "";
            }
        } else {
            rest = &rest[c.len_utf8()..];
            match c {
                '<' => {
                    let head = std::mem::take(&mut frame.now).trim().to_owned();
                    open.push(std::mem::replace(&mut frame, Frame { head, ..Frame::default() }));
                }
                ',' if !open.is_empty() => frame.argument(),
                '>' => match open.pop() {
                    Some(outer) => {
                        let done = std::mem::replace(&mut frame, outer).close();
                        frame.now += &done;
                    }
                    None => frame.now.push(c),
                },
                _ => frame.now.push(c),
            }
        }
    }
    while let Some(outer) = open.pop() {
        let done = std::mem::replace(&mut frame, outer).close();
        frame.now += &done;
    }
    frame.now.trim().to_owned()
}

/// What the parentheses at the beginning of `text` hold, and what follows them.
fn group(text: &str) -> (&str, &str) {
    let mut depth = 0usize;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (text.get(1..i).unwrap_or(""), text.get(i + 1..).unwrap_or(""));
        }
    }
    (text.get(1..).unwrap_or(""), "")
}

/// The chain of lambdas at the beginning of `text`: the parameter types of the innermost, and what follows. Integers alone
/// are an index, not a data type.
fn lambdas(text: &str) -> Option<(String, &str)> {
    let mut rest = text;
    let mut types = String::new();
    let mut any = false;
    loop {
        let after = rest.strip_prefix("::").unwrap_or(rest);
        let closing = match () {
            () if after.starts_with("{lambda(") => '}',
            () if after.starts_with("[lambda(") => ']',
            () => break,
        };
        any = true;
        let (parameters, behind) = group(after.get("{lambda".len()..)?);
        types = template(parameters);
        rest = behind.split_once(closing).map_or("", |(_, after)| after);
        for call in ["::operator()() const", "::operator ()() const", "::operator()()", "::operator ()()"] {
            if let Some(after) = rest.strip_prefix(call) {
                rest = after;
                break;
            }
        }
    }
    let index = types.split(", ").all(|t| matches!(t, "int" | "bool" | "unsigned int" | ""));
    any.then(|| (if index { String::new() } else { format!("({types})") }, rest))
}

/// What a name mangled by the Itanium C++ ABI says without its grammar being followed: the function, and the names,
/// literals and basic types among its template arguments.
fn itanium(mangled: &str) -> String {
    let mut rest = mangled.strip_prefix('N').unwrap_or(mangled);
    let mut function = "";
    while let Some((word, after)) = source_name(rest) {
        function = word;
        rest = after;
    }
    let Some(mut rest) = rest.strip_prefix('I').filter(|_| !function.is_empty()) else { return function.to_owned() };
    let (mut depth, mut args) = (1usize, Vec::<&str>::new());
    while let Some(c) = rest.chars().next() {
        let skip = match c {
            _ if c.is_ascii_digit() => match source_name(rest) {
                Some((word, after)) => {
                    args.push(word);
                    rest = after;
                    continue;
                }
                None => 1,
            },
            'L' if rest.starts_with("L_Z") => 3,
            'L' => {
                let end = rest.find('E').unwrap_or(rest.len() - 1);
                args.push(match rest.get(1..end).unwrap_or("") {
                    "b0" => "false",
                    "b1" => "true",
                    literal => literal.trim_start_matches(|c: char| !c.is_ascii_digit()),
                });
                end + 1
            }
            'S' | 'T' => match rest.find('_') {
                Some(end) if rest[1..end].bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()) => end + 1,
                _ => 2.min(rest.len()),
            },
            'D' if rest.starts_with("DF16b") => {
                args.push("bf16");
                5
            }
            'D' if rest.starts_with("DF16_") => {
                args.push("f16");
                5
            }
            'I' | 'N' | 'X' | 'J' | 'F' => {
                depth += 1;
                1
            }
            'E' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                1
            }
            'f' if depth == 1 => {
                args.push("float");
                1
            }
            c => c.len_utf8(),
        };
        rest = rest.get(skip..).unwrap_or("");
    }
    format!("{function}<{}>", args.join(", "))
}

/// A length and the identifier of that length, and what follows.
fn source_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text.get(..digits)?.parse().ok().filter(|n| *n > 0)?;
    let end = digits.checked_add(length)?;
    Some((text.get(digits..end)?, text.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUL: &str = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&)::{lambda(int)#1})";

    #[test]
    fn the_functor_and_the_data_type_stay() {
        let cases = [
            (MUL, "elementwise_kernel<128, 4, BinaryFunctor<BFloat16 ×3, MulFunctor<float>>>"),
            (
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, int const&)::{lambda(int)#1}>(int)",
                "elementwise_kernel<128, 4, direct_copy_kernel_cuda(BFloat16)>",
            ),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int, std::array<char*, 2ul>)",
                "vectorized_elementwise_kernel<4, pow_tensor_scalar_kernel_impl<float, float>(float)>",
            ),
            (
                "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)",
                "elementwise_kernel<128, 2, BinaryFunctor<float ×3, MulFunctor<float>>>",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2::Params)",
                "Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>",
            ),
            (
                "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, long const*)",
                "reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, 0>",
            ),
        ];
        for (name, expected) in cases {
            let form = short(name);
            match expected.chars().count() <= NAME - MARK {
                true => assert_eq!(form, expected),
                false => assert!(expected.starts_with(form.trim_end_matches('…')) && form.ends_with('…'), "{form}"),
            }
        }
    }

    #[test]
    fn a_mangled_name_shows_its_function_and_arguments() {
        let norm =
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib";
        assert_eq!(short(norm), "add_rmsnorm_quant_kernel<bf16, bf16, 64, 8, false, false, true, 1>");
        let act = "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i";
        assert!(short(act).starts_with("act_and_mul_kernel<__hip_bfloat16, silu"), "{}", short(act));
    }

    /// A product of cuBLAS was `enable_if<!T7, void>::type kernel<…>`, which said nothing of what it is.
    #[test]
    fn what_a_template_returns_is_no_name_and_a_plain_kernel_keeps_its_namespace() {
        let gemv = "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, (bool)0, (bool)1>(T13)";
        assert_eq!(short(gemv), "gemvx::kernel<int, int, __nv_bfloat16 ×3, float, 0, 1>");
    }

    #[test]
    fn names_of_words_are_cut_between_words() {
        let gemm = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas";
        assert_eq!(short(gemm), "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64…segment_k_off");
        assert_eq!(short("nvjet_tst_64x8"), "nvjet_tst_64x8");
    }

    #[test]
    fn different_kernels_never_share_a_short_form() {
        let tensile = |nta: u8| format!("Cijk_Alik_Bljk_BBS_BH_{}NTA{nta}_{}", "X1_".repeat(40), "WS64_".repeat(9));
        let (a, b) = (tensile(0), tensile(4));
        let forms = short_all(&[&a, &b, MUL, &a]);
        assert!(forms[0] != forms[1] && forms[0].contains(" #"), "{forms:?}");
        assert_eq!((&forms[0], forms[2].contains('#')), (&forms[3], false));
    }

    proptest::proptest! {
        #[test]
        fn a_short_form_fits_and_nothing_panics(
            name in "(_Z|void )?([a-z]{1,9}|::|[<>(){},& ]|lambda\\(|\\{lambda\\(|\\[lambda\\(|[NILESTDXJ_]|[0-9]{1,3}|µ核){0,60}",
        ) {
            let form = short(&name);
            proptest::prop_assert!(form.chars().count() <= NAME, "{form}");
            proptest::prop_assert!(name.is_empty() || !form.is_empty());
        }
    }
}
