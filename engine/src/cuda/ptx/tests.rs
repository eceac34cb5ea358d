//! What the embedded PTX is and whether it still is what the kernels give; and whether all kernels compile for the devices of
//! these years. For the second the variable `STRATO_NVRTC` names a compiler.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use super::*;
use crate::cuda::{
    compiler::{Compiler, Form},
    source::FAMILIES,
};

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Q8];
const ARCHITECTURE: &str = "compute_80";
/// The compiler that makes the files.
const MAKER: (i32, i32) = (12, 1);

/// Every family with every type of weights that makes a difference.
fn all() -> Vec<(Family, Dtype)> {
    let of = |family: Family| {
        let dtypes = if family.is_weighted { &DTYPES[..] } else { &DTYPES[..1] };
        dtypes.iter().map(move |dtype| (family, *dtype))
    };
    FAMILIES.into_iter().flat_map(of).collect()
}

/// FNV-1a over all that is compiled and how.
fn fingerprint(family: &Family, dtype: Dtype) -> String {
    let text = family.text() + &family.options(ARCHITECTURE, dtype).join(" ");
    let hash =
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("// made from sources {hash:016x} by engine/src/cuda/ptx/make.sh")
}

/// The compiler that the environment names.
fn compiler() -> &'static Compiler {
    let path = std::env::var_os("STRATO_NVRTC").map(PathBuf::from);
    let path = path.expect("STRATO_NVRTC has to name an NVRTC; pip install nvidia-cuda-nvrtc has one");
    Compiler::load(Some(&path)).unwrap()
}

#[test]
fn every_kernel_is_in_the_embedded_ptx_and_it_is_not_stale() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cuda/ptx");
    let bless = std::env::var_os("STRATO_BLESS_PTX").is_some();
    let mut bytes = 0;
    for (family, dtype) in all() {
        let (name, first) = (name(&family, dtype), fingerprint(&family, dtype));
        if bless {
            let compiler = compiler();
            assert_eq!(compiler.version, MAKER, "an older driver takes the PTX of an older compiler only");
            let options = family.options(ARCHITECTURE, dtype);
            let made = compiler.compile(family.name, &family.text(), &options, Form::Ptx).unwrap();
            let made = String::from_utf8(made).unwrap();
            // What the compiler says of itself is no part of the code.
            let code: String = made
                .trim_end_matches('\0')
                .lines()
                .filter(|l| !l.starts_with("//"))
                .map(|l| format!("{l}\n"))
                .collect();
            std::fs::write(directory.join(format!("{name}.ptx")), format!("{first}\n{}\n", code.trim())).unwrap();
            continue;
        }
        let text = of(&family, dtype);
        bytes += text.len();
        assert_eq!(text.lines().next(), Some(&*first), "{name}.ptx is stale: run engine/src/cuda/ptx/make.sh");
        assert!(text.contains(".version 8.1") && text.contains(".target sm_80"), "{name}");
        let signatures = family.signatures(dtype);
        assert!(!signatures.is_empty(), "{name}");
        for (kernel, takes) in &signatures {
            let (_, entry) =
                text.split_once(&format!(".visible .entry {kernel}(")).unwrap_or_else(|| panic!("no {kernel}"));
            let (parameters, _) = entry.split_once(')').unwrap();
            let types: Vec<&str> = parameters.split(',').map(|p| p.split_whitespace().nth(1).unwrap()).collect();
            let expected: Vec<&str> = takes.iter().map(|kind| kind.in_ptx()).collect();
            assert_eq!(types, expected, "{kernel}");
        }
        assert_eq!(text.matches(".visible .entry").count(), signatures.len(), "{name}");
    }
    assert!(bytes < 440 << 10, "{bytes} bytes of PTX");
}

#[test]
#[ignore = "needs STRATO_NVRTC, a library of NVRTC"]
fn every_kernel_compiles_for_ampere_hopper_and_blackwell() {
    let compiler = compiler();
    let mut compiled = 0;
    for capability in [(8, 0), (9, 0), (10, 0)] {
        let architecture = format!("sm_{}{}", capability.0, capability.1);
        if !compiler.knows(capability) {
            println!("NVRTC {} does not know {architecture}", compiler.title());
            continue;
        }
        for (family, dtype) in all() {
            let options = family.options(&architecture, dtype);
            let code = compiler.compile(family.name, &family.text(), &options, Form::Cubin);
            let code = code.unwrap_or_else(|told| panic!("{} {dtype:?} {architecture}: {told}", family.name));
            assert!(code.starts_with(b"\x7fELF"), "{}", family.name);
            for kernel in family.signatures(dtype).keys() {
                assert!(code.windows(kernel.len()).any(|part| part == kernel.as_bytes()), "{kernel} {architecture}");
            }
            compiled += 1;
        }
    }
    println!("NVRTC {}: {compiled} compilations", compiler.title());
    assert!(compiled > 0);
}

#[test]
#[ignore = "needs STRATO_NVRTC, a library of NVRTC"]
fn what_a_compiler_does_not_understand_is_told_in_its_words() {
    let compiler = compiler();
    let told = compiler.compile("wrong", "__global__ void f() { no_such_call(); }", &[], Form::Ptx).unwrap_err();
    assert!(told.contains("no_such_call"), "{told}");
}
