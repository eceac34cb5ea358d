//! Libraries of real versions, where `STRATO_CUPTI_LIBS` names their files, and what is said where there is none.

use std::path::{Path, PathBuf};

use super::super::{Api, Unavailable};

#[test]
#[ignore = "needs STRATO_CUPTI_LIBS, libraries of CUPTI"]
fn real_libraries_have_every_function() {
    let files = std::env::var_os("STRATO_CUPTI_LIBS").expect("STRATO_CUPTI_LIBS has to name libraries of CUPTI");
    for file in std::env::split_paths(&files) {
        let api = Api::open(&file).unwrap();
        assert_eq!(api.missing(), Vec::<&str>::new(), "{}", file.display());
        println!("{}: version {:?}, every function is there", file.display(), api.version());
        // Since 13 they answer only where there is a driver.
        if api.version().is_some() {
            assert_eq!(api.call_name(1, 307).as_deref(), Some("cuLaunchKernel"));
        }
    }
}

#[test]
fn a_library_that_is_not_there_or_is_another_is_told() {
    let error = Api::open(Path::new("/nowhere/libcupti.so.13")).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, Unavailable::Library { .. }), "{said}");
    assert!(said.contains("/nowhere/libcupti.so.13") && said.contains("pip install nvidia-cuda-cupti"), "{said}");
    // The C library is a library, and no CUPTI.
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let error = Api::open(Path::new("libc.so.6")).unwrap_err();
        let expected = Unavailable::Symbol { file: "libc.so.6".into(), symbol: "cuptiSubscribe" };
        assert_eq!(error, expected);
    }
}

#[test]
#[ignore = "needs a machine without CUPTI"]
fn of_many_places_the_plain_name_is_told_unless_a_file_is_there_that_is_none() {
    let names = ["libcupti.so.99", "libcupti.so", "libcupti.so.98"].map(PathBuf::from);
    assert!(!names.iter().any(|name| Api::open(name).is_ok()), "this system finds a CUPTI");
    let said = |files: Vec<PathBuf>| Api::first(files).unwrap_err().to_string();
    let plain = said(names.to_vec());
    assert!(plain.contains("libcupti.so:") && !plain.contains("libcupti.so.9"), "{plain}");
    let directory = tempfile::tempdir().unwrap();
    let broken = directory.path().join("libcupti.so.12");
    std::fs::write(&broken, "no library").unwrap();
    let there = said(names.into_iter().chain([broken.clone()]).collect());
    assert!(there.contains(&broken.display().to_string()), "{there}");
    assert!(said(vec!["libcupti.so.99".into()]).contains("libcupti.so.99"));
    assert!(said(Vec::new()).contains("no place"));
}
