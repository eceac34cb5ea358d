//! A CUDA driver without a device, built from `driver.cpp` beside this file and from the engine's own kernels.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The driver's library. Tests that use it are ignored where nobody asks for them: no C++ compiler may be there to build it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(path) => path,
        Err(why) => {
            panic!("the simulated CUDA driver cannot be built: {why}; install a C++ compiler or name it in CXX")
        }
    }
}

fn build() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = [manifest.join("tests/simulated_cuda"), manifest.join("engine/tests/simulated_cuda")];
    let own = own.into_iter().find(|own| own.is_dir()).ok_or("its source is not there")?;
    let kernels = own.join("../../src/cuda/kernels");
    // Programs of several tests build it at the same time: each its own, which then takes the place.
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (made, library) = (out.join(format!("cuda-{}.so", std::process::id())), out.join("libcuda-simulated.so"));
    if is_newer(&library, &[&own, &kernels]) {
        return Ok(library);
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let warnings = ["-Wall", "-Werror", "-Wno-unknown-pragmas", "-Wno-sign-compare", "-Wno-unused-function"];
    let built = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-fPIC", "-shared", "-pthread"])
        .args(warnings)
        .arg("-I")
        .arg(kernels)
        .arg(own.join("driver.cpp"))
        .arg("-o")
        .arg(&made)
        .output()
        .map_err(|error| format!("'{compiler}': {error}"))?;
    // Where there is a compiler, what it does not take is a mistake of ours.
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    std::fs::rename(&made, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

/// Whether the library is younger than every source: the tests of several packages share one.
fn is_newer(library: &Path, sources: &[&Path]) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(built) = changed(library) else { return false };
    let files = sources.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    files.into_iter().all(|file| changed(&file.path()).is_some_and(|at| at < built))
}
