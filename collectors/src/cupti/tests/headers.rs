//! The offsets and numbers that are used here against the headers of real versions: by a C compiler where
//! `STRATO_CUPTI_INCLUDE` names directories below which such headers lie (those of the CUPTI and runtime packages of PyPI, each
//! version unpacked into one), and by what it computed before in any case. `STRATO_BLESS=1` writes that down anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use super::super::{abi, layout};
use crate::activity::fields::Named;

/// What a compiler computed: versions of the interface, a structure, its size, and its fields as `name@offset:bytes`.
const COMPUTED: &str = include_str!("offsets.txt");

/// Structures by their stem, the first version that is read, and the fields that are read of it.
const STRUCTURES: &[(&str, u32, &[Named])] = &[
    ("CUpti_Activity", 0, layout::any::FIELDS),
    ("CUpti_ActivityKernel", 5, layout::kernel::FIELDS),
    ("CUpti_ActivityKernel", 6, layout::graph_of_kernel::FIELDS),
    ("CUpti_ActivityMemcpy", 4, layout::copy::FIELDS),
    ("CUpti_ActivityMemcpyPtoP", 3, layout::peer_copy::FIELDS),
    ("CUpti_ActivityMemset", 3, layout::fill::FIELDS),
    ("CUpti_ActivityAPI", 0, layout::call::FIELDS),
    ("CUpti_ActivityExternalCorrelation", 0, layout::external::FIELDS),
    ("CUpti_ActivityGraphTrace", 0, layout::graph::FIELDS),
    ("CUpti_ActivitySynchronization", 0, layout::wait::FIELDS),
    ("CUpti_ActivityOverhead", 0, layout::overhead::FIELDS),
    ("CUpti_ResourceData", 0, layout::resource::FIELDS),
    ("CUpti_GraphData", 0, layout::node::FIELDS),
];

/// What CUDA's headers take from the compiler's own package, which nothing else is needed of: attributes of functions and types.
const ATTRIBUTES: &str = "\
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __location__(x)
";

/// Fields that are read of a structure of this name, all that it must have.
fn fields(structure: &str) -> Vec<Named> {
    let digits = structure.len() - structure.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = structure.split_at(structure.len() - digits);
    let number: u32 = number.parse().unwrap_or(0);
    let own = STRUCTURES.iter().filter(|(own, first, _)| *own == stem && number >= *first);
    own.flat_map(|(.., fields)| fields.iter().copied()).collect()
}

fn line(structure: &str, size: &str, fields: impl Iterator<Item = (String, usize, usize)>) -> String {
    fields.fold(format!("{structure} {size}"), |mut line, (name, at, bytes)| {
        write!(line, " {name}@{at}:{bytes}").unwrap();
        line
    })
}

#[test]
fn fields_lie_where_a_compiler_put_them_in_every_version() {
    let mut versions = BTreeSet::new();
    let mut structures = 0;
    for row in COMPUTED.lines().filter(|row| !row.starts_with('#')) {
        let (own, row) = row.split_once(' ').unwrap();
        versions.extend(own.split(','));
        let mut words = row.split(' ');
        let (structure, size) = (words.next().unwrap(), words.next().unwrap());
        let expected = fields(structure).into_iter().map(|(name, at, bytes)| (name.to_owned(), at, bytes));
        assert_eq!(row, line(structure, size, expected), "version {own}");
        structures += 1;
    }
    // CUDA 11.7, 12.1, 12.9 and 13.5 call their interfaces so.
    assert_eq!(versions.into_iter().collect::<Vec<_>>(), ["130500", "17", "18", "28"]);
    assert!(structures >= 30, "{structures}");
}

#[test]
#[ignore = "needs STRATO_CUPTI_INCLUDE, folders with the headers of CUPTI"]
fn fields_and_numbers_are_those_of_the_headers() {
    let roots = std::env::var_os("STRATO_CUPTI_INCLUDE");
    let roots = roots.expect("STRATO_CUPTI_INCLUDE has to name folders with the headers of CUPTI");
    let mut rows: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut seen = 0;
    for root in std::env::split_paths(&roots) {
        let mut places = BTreeMap::new();
        headers(&root, 7, &mut places);
        let (Some(cupti), Some(cuda)) = (places.get("cupti.h"), places.get("cuda.h")) else {
            println!("'{}' has no cupti.h or no cuda.h below it", root.display());
            continue;
        };
        let (version, of_version) = computed(cupti, cuda);
        seen += 1;
        for row in of_version {
            let structure = row.split(' ').next().unwrap();
            let size = row.split(' ').nth(1).unwrap();
            let expected = fields(structure).into_iter().map(|(name, at, bytes)| (name.to_owned(), at, bytes));
            assert_eq!(row, line(structure, size, expected), "version {version}");
            rows.entry(row).or_default().insert(version);
        }
    }
    println!("headers of {seen} versions");
    let text = rows.into_iter().fold(
        "# What a C compiler computes of CUPTI's headers: versions of its interface, a structure, its bytes, and\n\
         # name@offset:bytes of the fields that are read of it. Written by STRATO_BLESS=1 cargo test cupti::tests::headers\n"
            .to_owned(),
        |mut text, (row, versions)| {
            let versions: Vec<_> = versions.iter().map(u32::to_string).collect();
            writeln!(text, "{} {row}", versions.join(",")).unwrap();
            text
        },
    );
    if std::env::var_os("STRATO_BLESS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cupti/tests/offsets.txt");
        std::fs::write(file, text).unwrap();
    }
}

/// The directories below `root` that hold each of the headers.
fn headers(root: &Path, depth: usize, places: &mut BTreeMap<&'static str, PathBuf>) {
    let Ok(entries) = root.read_dir() else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if depth > 0 && path.is_dir() {
            headers(&path, depth - 1, places);
        }
        for name in ["cupti.h", "cuda.h"] {
            if path.ends_with(name) {
                places.insert(name, root.to_owned());
            }
        }
    }
}

/// Version of the headers, and what a program that is compiled against them says of every structure.
fn computed(cupti: &Path, cuda: &Path) -> (u32, Vec<String>) {
    let read = |name: &str| std::fs::read_to_string(cupti.join(name)).unwrap_or_default();
    let text: String = ["cupti_activity.h", "cupti_activity_deprecated.h", "cupti_callbacks.h"].map(read).concat();
    let has = |structure: &str| text.contains(&format!("}} {structure};"));
    let mut program = "#include <stddef.h>\n#include <stdio.h>\n#include <cupti.h>\nint main(void) {\n".to_owned();
    program += "printf(\"%u\\n\", (unsigned)CUPTI_API_VERSION);\n";
    for (stem, ..) in STRUCTURES {
        let numbered = (0..40).map(|number| if number == 0 { (*stem).to_owned() } else { format!("{stem}{number}") });
        for structure in numbered.filter(|structure| has(structure) && !fields(structure).is_empty()) {
            if program.contains(&format!("sizeof({structure})")) {
                continue;
            }
            write!(program, "printf(\"{structure} %zu\", sizeof({structure}));").unwrap();
            for (field, ..) in fields(&structure) {
                write!(
                    program,
                    "printf(\" {field}@%zu:%zu\", offsetof({structure}, {field}), sizeof((({structure} *)0)->{field}));"
                )
                .unwrap();
            }
            program += "printf(\"\\n\");\n";
        }
    }
    let later = abi::later::NUMBERS.iter().filter(|(name, _)| text.contains(name));
    for (name, value) in abi::NUMBERS.iter().chain(later) {
        writeln!(program, "_Static_assert((unsigned)({name}) == {value}u, \"{name}\");").unwrap();
    }
    program += "return 0; }\n";
    let directory = tempfile::tempdir().unwrap();
    let (source, binary) = (directory.path().join("offsets.c"), directory.path().join("offsets"));
    std::fs::write(&source, program).unwrap();
    let own = directory.path().join("own");
    std::fs::create_dir_all(own.join("crt")).unwrap();
    std::fs::write(own.join("crt/host_defines.h"), ATTRIBUTES).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-w").arg("-o").arg(&binary).arg(&source);
    [cupti, cuda, &own].into_iter().for_each(|place| {
        compiler.arg("-I").arg(place);
    });
    let compiled = compiler.output().expect("a C compiler");
    assert!(compiled.status.success(), "{}: {}", cupti.display(), String::from_utf8_lossy(&compiled.stderr));
    let out = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    let mut lines = out.lines().map(str::to_owned);
    (lines.next().unwrap().parse().unwrap(), lines.collect())
}
