//! The calls and numbers that are used here against the vendor's headers and libraries. A C++ compiler holds the types of every
//! call against those of the headers that lie below a directory of `STRATO_CUPTI_INCLUDE` (the packages `nvidia-cuda-runtime`,
//! `nvidia-cuda-nvrtc`, `nvidia-cublas` and `nvidia-nccl` of PyPI, unpacked); `STRATO_CUBLASLT` and `STRATO_NCCL` name libraries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use super::{compiler, cublaslt, driver, library::Signature, nccl};

/// A header with the tables that it declares, and constants of it with their values here.
struct Header {
    name: &'static str,
    calls: &'static [&'static [Signature]],
    numbers: &'static [(&'static str, i64)],
    /// Further statements that must hold.
    also: &'static str,
}

const HEADERS: [Header; 4] = [
    Header { name: "cuda.h", calls: &[driver::SIGNATURES], numbers: driver::NUMBERS, also: "" },
    Header { name: "nvrtc.h", calls: &compiler::SIGNATURES, numbers: &[], also: "" },
    Header {
        name: "cublasLt.h",
        calls: &[cublaslt::SIGNATURES],
        numbers: cublaslt::NUMBERS,
        also: "static_assert(sizeof(cublasLtMatmulAlgo_t) == 64, \"algorithm\");\n\
               static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, \"result\");\n\
               static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64, \"workspace\");\n\
               static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, \"state\");\n",
    },
    Header {
        name: "nccl.h",
        calls: &[nccl::SIGNATURES],
        numbers: nccl::NUMBERS,
        also: "static_assert(sizeof(ncclUniqueId) == 128, \"id\");\n",
    },
];

/// What headers take from packages that nothing else is needed of.
const OTHERS: [(&str, &str); 6] = [
    (
        "crt/host_defines.h",
        "#define __align__(n) __attribute__((aligned(n)))\n#define __builtin_align__(n) __align__(n)\n#define CUDARTAPI\n\
         #define CUDARTAPI_CDECL\n#define __host__\n#define __device__\n#define __device_builtin__\n\
         #define __device_builtin_texture_type__\n#define __device_builtin_surface_type__\n#define __cudart_builtin__\n\
         #define __location__(x)\n",
    ),
    ("cuda_runtime.h", "#include <driver_types.h>\n#include <library_types.h>\n"),
    ("cuComplex.h", "typedef struct { float x, y; } cuComplex;\ntypedef struct { double x, y; } cuDoubleComplex;\n"),
    ("cuda_fp16.h", "typedef struct { short bits; } __half;\n"),
    ("cuda_bf16.h", "typedef struct { short bits; } __nv_bfloat16;\n"),
    ("cuda_fp8.h", ""),
];

/// Two types are alike where a caller cannot tell them apart: numbers of the same size, and pointers to such.
const ALIKE: &str = "\
#include <cstddef>
#include <cstdint>
#include <type_traits>
template <class A, class B> constexpr bool alike() {
    using namespace std;
    if constexpr (is_pointer_v<A> && is_pointer_v<B>) {
        using To = remove_cv_t<remove_pointer_t<A>>;
        using Other = remove_cv_t<remove_pointer_t<B>>;
        // What handles point to is the library's.
        if constexpr (is_void_v<To> || is_void_v<Other>) return true;
        else return alike<To, Other>();
    } else if constexpr ((is_integral_v<A> || is_enum_v<A>) && (is_integral_v<B> || is_enum_v<B>)) {
        return sizeof(A) == sizeof(B);
    } else if constexpr (is_floating_point_v<A> || is_floating_point_v<B>) {
        return is_same_v<A, B>;
    } else if constexpr (is_class_v<A> && is_class_v<B>) {
        return sizeof(A) == sizeof(B);
    } else {
        return false;
    }
}
template <class A, class... Of, class B, class... To> constexpr bool agree(A (*)(Of...), B (*)(To...)) {
    if constexpr (sizeof...(Of) != sizeof...(To)) return false;
    else return alike<A, B>() && (alike<Of, To>() && ...);
}
struct Id { char bytes[128]; };
struct Algorithm { uint64_t data[8]; };
struct Found { Algorithm algorithm; size_t workspace; int state; float waves; int reserved[4]; };
";

/// A type of this program as C++ has it.
fn in_cpp(ours: &str) -> String {
    let pointee = ours.strip_prefix("*mut ").or_else(|| ours.strip_prefix("*const "));
    if let Some(pointee) = pointee {
        return format!("{} *", in_cpp(pointee));
    }
    match ours {
        "" | "c_int" => "int",
        "c_uint" => "unsigned",
        "c_char" => "char",
        "c_void" => "void",
        "c_ulonglong" | "Address" => "unsigned long long",
        "Handle" | "Program" => "void *",
        "u8" => "unsigned char",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "usize" => "size_t",
        "f32" => "float",
        "Id" | "Algorithm" | "Found" => ours,
        other => panic!("what is '{other}' in C++?"),
    }
    .to_owned()
}

/// A text that compiles where the header says what is said here; of one call of it `broken` makes another.
fn text(header: &Header, broken: Option<usize>) -> String {
    let mut text = format!("{ALIKE}#include <{}>\n", header.name);
    for (number, (symbol, arguments, answer)) in header.calls.iter().flat_map(|table| table.iter()).enumerate() {
        let mut arguments: Vec<String> = arguments.iter().map(|argument| in_cpp(argument)).collect();
        if broken == Some(number) {
            arguments.push("int".to_owned());
        }
        let ours = format!("static_cast<{} (*)({})>(nullptr)", in_cpp(answer), arguments.join(", "));
        writeln!(text, "static_assert(agree({ours}, &{symbol}), \"{symbol}\");").unwrap();
    }
    for (name, value) in header.numbers {
        writeln!(text, "static_assert(static_cast<long long>({name}) == {value}, \"{name}\");").unwrap();
    }
    text + header.also
}

/// Directories below `root` that have a header.
fn places(root: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = root.read_dir() else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() && depth > 0 {
            places(&path, depth - 1, found);
        }
        if HEADERS.iter().any(|header| path.ends_with(header.name)) || path.ends_with("driver_types.h") {
            found.insert(root.to_owned());
        }
    }
}

/// What a compiler says of a text.
fn compiled(text: &str, include: &[&Path]) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("calls.cpp");
    std::fs::write(&source, text).unwrap();
    let own = directory.path().join("own");
    std::fs::create_dir_all(own.join("crt")).unwrap();
    OTHERS.iter().for_each(|(name, text)| std::fs::write(own.join(name), text).unwrap());
    let mut compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    compiler.args(["-std=c++17", "-w", "-fsyntax-only"]).arg(&source).arg("-I").arg(&own);
    for place in include {
        compiler.arg("-I").arg(place);
    }
    let done = compiler.output().expect("a C++ compiler");
    done.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn calls_and_numbers_are_those_of_the_headers() {
    let Some(roots) = std::env::var_os("STRATO_CUPTI_INCLUDE") else {
        println!("skipped: STRATO_CUPTI_INCLUDE names no directory with the headers of CUDA");
        return;
    };
    let mut seen = Vec::new();
    for root in std::env::split_paths(&roots) {
        let mut found = BTreeSet::new();
        places(&root, 7, &mut found);
        let include: Vec<&Path> = found.iter().map(PathBuf::as_path).collect();
        for header in HEADERS.iter().filter(|header| found.iter().any(|place| place.join(header.name).is_file())) {
            compiled(&text(header, None), &include).unwrap_or_else(|told| panic!("{} {told}", root.display()));
            // A compiler that would take anything would show nothing.
            let told = compiled(&text(header, Some(0)), &include).unwrap_err();
            assert!(told.contains(header.calls[0][0].0), "{told}");
            seen.push(header.name);
        }
    }
    println!("agree with {}", seen.join(", "));
}

#[test]
fn calls_of_products_and_collectives_are_in_the_libraries() {
    for (name, symbols) in [("STRATO_CUBLASLT", cublaslt::SIGNATURES), ("STRATO_NCCL", nccl::SIGNATURES)] {
        let Some(path) = std::env::var_os(name).filter(|path| !path.is_empty()) else {
            println!("skipped: {name} names no library");
            continue;
        };
        // SAFETY: nothing of it is called; what it does when it is loaded is the vendor's business.
        #[allow(unsafe_code)]
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        for (symbol, ..) in symbols {
            // SAFETY: as above.
            #[allow(unsafe_code)]
            let call = unsafe { library.get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
            assert!(call.is_ok(), "{symbol}");
        }
        println!("{} calls are in {}", symbols.len(), Path::new(&path).display());
    }
}
