//! Every way into the program for a file that somebody else wrote: what is no file, never ends, keeps a reader waiting or is far too
//! long ends the command within seconds, with a sentence that names it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// More than any side input may have; the file has no content and takes no room.
const TOO_LONG: u64 = 200 << 20;
/// How long a refusal may take on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends with this exit code and these words, or does not end: then the test fails, and nothing is left running.
fn ended(arguments: &[&str], directory: &Path, input: Stdio) -> (i32, String) {
    let errors = directory.join("stderr");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(arguments).current_dir(directory).env_clear().env("LANG", "C.UTF-8").env("HOME", directory);
    let mut child = command.stdin(input).stdout(Stdio::null()).stderr(File::create(&errors).unwrap()).spawn().unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code().unwrap_or(-1), fs::read_to_string(errors).unwrap());
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is no file to be read, each under a name of its own.
fn bad(directory: &Path) -> Vec<PathBuf> {
    let pipe = directory.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let long = directory.join("long");
    File::create(&long).unwrap().set_len(TOO_LONG).unwrap();
    let folder = directory.join("folder");
    fs::create_dir(&folder).unwrap();
    vec![PathBuf::from("/dev/zero"), pipe, long, folder]
}

fn sample(name: &str) -> String {
    crate::common::samples().join(name).display().to_string()
}

#[test]
fn a_side_input_that_is_no_short_file_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let trace = &sample("launch-bound-eager.json.gz");
    for path in bad(directory.path()) {
        let bad = &path.display().to_string();
        let commands: [&[&str]; 5] = [
            &["diff", "--declare", bad, trace, trace],
            &["diff", "--baseline", bad, "--fail-on", "medium", trace, trace],
            &["plan", "check", bad, trace, trace],
            &["diagnose", "--model", bad, trace],
            &["diagnose", "--probe", bad, trace],
        ];
        for arguments in commands {
            let (code, errors) = ended(arguments, directory.path(), Stdio::null());
            assert!(matches!(code, 2 | 3), "{arguments:?} ended with {code}: {errors}");
            let unknown_option = errors.contains("unexpected argument");
            assert!(errors.contains(bad.as_str()) && !unknown_option, "{arguments:?}: {errors}");
        }
    }
}

#[test]
fn a_pack_that_is_no_short_file_is_refused_by_name() {
    let trace = &sample("launch-bound-eager.json.gz");
    for kind in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        let packs = directory.path().join("packs");
        fs::create_dir(&packs).unwrap();
        let target = bad(directory.path()).swap_remove(kind);
        std::os::unix::fs::symlink(target, packs.join("mine.toml")).unwrap();
        let (code, errors) =
            ended(&["diagnose", "--pack", &packs.display().to_string(), trace], directory.path(), Stdio::null());
        assert!(code == 2 && errors.contains("mine.toml"), "{code}: {errors}");
    }
}

#[test]
fn a_declaration_from_standard_input_that_never_ends_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let trace = &sample("launch-bound-eager.json.gz");
    let zero = Stdio::from(File::open("/dev/zero").unwrap());
    let (code, errors) = ended(&["diff", "--declare", "-", trace, trace], directory.path(), zero);
    assert!(code == 2 && errors.contains("'-'") && errors.contains("more than"), "{code}: {errors}");
}

/// A checkpoint comes from the network like a trace does.
#[test]
fn a_checkpoint_of_pipes_and_devices_is_refused_by_name() {
    let config = r#"{"model_type":"llama","vocab_size":64,"hidden_size":32,"intermediate_size":64,"num_hidden_layers":1,
"num_attention_heads":2,"num_key_value_heads":2,"max_position_embeddings":128,"rms_norm_eps":1e-5}"#;
    for kind in 0..4 {
        for file in ["config.json", "model.safetensors", "model.safetensors.index.json"] {
            let directory = tempfile::tempdir().unwrap();
            let model = directory.path().join("model");
            fs::create_dir(&model).unwrap();
            if file != "config.json" {
                fs::write(model.join("config.json"), config).unwrap();
            }
            let target = bad(directory.path()).swap_remove(kind);
            std::os::unix::fs::symlink(target, model.join(file)).unwrap();
            let arguments =
                ["run", "--model", &model.display().to_string(), "--prompt-len", "4", "--gen", "2", "--json"];
            let (code, errors) = ended(&arguments, directory.path(), Stdio::null());
            assert!(matches!(code, 2 | 3), "{file}, {kind}: {code}: {errors}");
            assert!(errors.contains(&model.display().to_string()), "{file}, {kind}: {errors}");
        }
    }
}

#[test]
fn captures_that_take_more_memory_than_they_may_are_refused_with_figures() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("many.json");
    let event = |i: u32| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{i},"dur":1,"args":{{"device":0,"stream":7}}}}"#
        )
    };
    let events: Vec<String> = (0..100_000).map(event).collect();
    fs::write(&trace, format!(r#"{{"schemaVersion":1,"deviceProperties":[],"traceEvents":[{}]}}"#, events.join(",")))
        .unwrap();
    let given = trace.display().to_string();
    let out = directory.path().join("out.strato").display().to_string();
    let import = |most: &str| {
        let arguments = ["import", &given, "-o", &out, "--max-memory", most];
        ended(&arguments, directory.path(), Stdio::null())
    };
    let (code, errors) = import("8M");
    assert!(code == 3 && errors.contains("many.json") && errors.contains("8 MiB"), "{code}: {errors}");
    assert!(errors.contains("events were kept") && errors.contains("--max-memory"), "{errors}");
    assert!(!Path::new(&out).exists(), "a half of a capture was written");
    assert_eq!(import("1G").0, 0, "it fits");
    let (code, errors) = import("much");
    assert!(code == 2 && errors.contains("'much' is no size"), "{code}: {errors}");
}

/// Containers are read-only.
#[test]
fn nothing_is_written_below_a_temporary_directory_that_is_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let trace = sample("launch-bound-eager.json.gz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command.args(["diagnose", "-q", &trace]).current_dir(directory.path()).env_clear().env("TMPDIR", "/nonexistent");
    assert!(command.status().unwrap().success());
}

#[test]
fn more_threads_than_a_machine_can_start_are_not_started() {
    let directory = tempfile::tempdir().unwrap();
    let trace = sample("launch-bound-eager.json.gz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strato"));
    command
        .args(["diagnose", "-q", &trace])
        .current_dir(directory.path())
        .env_clear()
        .env("RAYON_NUM_THREADS", "99999");
    let began = Instant::now();
    assert!(command.status().unwrap().success() && began.elapsed() < PATIENCE);
}
