//! The page: nothing in it asks for anything outside, and a browser draws what it holds. `STRATO_CHROMIUM` names a browser of
//! the Chromium family.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use regex::Regex;

use super::{printed, program, sample};
use crate::common::strato;

fn page(trace: &Path, lang: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["export", trace.to_str().unwrap(), "--format", "html", "--lang", lang, "-q"];
    let output = strato(&arguments, directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_page_fetches_nothing_and_may_not() {
    let policy_of = Regex::new("Content-Security-Policy\" content=\"([^\"]*)\"").unwrap();
    let links = Regex::new("href=\"([^\"]*)\"").unwrap();
    for lang in ["en", "zh"] {
        let page = page(&sample("tensor-parallel-rocm.json.gz"), lang);
        let policy = &policy_of.captures(&page).unwrap()[1];
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        for asks in ["src=", "url(", "@import", "<link", "<iframe", "fetch(", "XMLHttpRequest", "WebSocket", "import("]
        {
            assert!(!page.contains(asks), "{asks}");
        }
        assert!(links.captures_iter(&page).all(|link| link[1].starts_with("#s")));
        // Scripts: the data of each picture, which is none, and the one that the policy names.
        let pictures = page.matches("<figure class=\"timeline\"").count();
        assert!(pictures > 1, "{pictures}");
        assert_eq!(page.matches("<script").count(), 1 + pictures);
        assert_eq!(page.matches("</script>").count(), 1 + pictures);
    }
}

/// A Kineto trace whose names try to leave every place that they are put into.
fn hostile(directory: &Path) -> PathBuf {
    const EVIL: &str = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>\\u2028\\u202e'\\\"`|*";
    let events: Vec<String> = (0..40)
        .flat_map(|i| {
            let at = i * 100;
            [
                format!(r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{at},"dur":9,"args":{{"correlation":{i}}}}}"#),
                format!(r#"{{"ph":"X","cat":"kernel","name":"{EVIL}","pid":0,"tid":7,"ts":{},"dur":50,"args":{{"correlation":{i},"device":0,"stream":7}}}}"#, at + 20),
                format!(r#"{{"ph":"X","cat":"user_annotation","name":"{EVIL}","pid":1,"tid":1,"ts":{},"dur":90}}"#, at - 1),
            ]
        })
        .collect();
    let text = format!(
        r#"{{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"{EVIL}"}}],"traceEvents":[{}]}}"#,
        events.join(",")
    );
    let path = directory.join("evil<b>.json");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn hostile_names_leave_no_place_in_a_page_or_picture() {
    let directory = tempfile::tempdir().unwrap();
    let trace = hostile(directory.path());
    let page = page(&trace, "en");
    assert!(page.contains("owned"), "the names are there");
    assert_eq!(page.matches("<script").count(), 1 + page.matches("<figure class=\"timeline\"").count());
    assert!(!page.contains("<img") && !page.contains(['\u{2028}', '\u{202e}']) && !page.contains("<b>.json"));
    let output = strato(&["export", trace.to_str().unwrap(), "--format", "svg", "-q"], directory.path());
    let picture = String::from_utf8(output.stdout).unwrap();
    assert!(picture.contains("owned") && !picture.contains("<script") && !picture.contains("<img"));
    assert!(!picture.contains(['\u{2028}', '\u{202e}']));
}

/// A browser without network, first-run pages and services, in a directory of its own.
fn browser() -> Command {
    let program =
        program("STRATO_CHROMIUM", &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]);
    let mut command = Command::new(program);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--window-size=1280,800"]);
    command.arg("--dump-dom");
    command
}

/// What the script of a page wrote on its timeline at first, and after each group of keys that is pressed there.
fn drawn(page: &str, keys: &[&[&str]]) -> Vec<BTreeMap<String, String>> {
    let mut command = browser();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("page.html");
    // Only here a page may run another script: the one that presses keys.
    let policy = Regex::new("script-src 'sha256-[^']*'").unwrap();
    let script = format!("<script>const groups = {};{PRESS}</script></body>", serde_json::to_string(keys).unwrap());
    let page = policy.replace(page, "script-src 'unsafe-inline'").replace("<body>", &format!("<body>{FRAMES}"));
    let page = page.replace("</body>", &script);
    std::fs::write(&file, page).unwrap();
    command.arg(format!("--user-data-dir={}", directory.path().join("profile").display()));
    let dom = printed(command.arg(format!("file://{}", file.display())));
    let told = Regex::new("(?s)<pre id=\"told\">(.*?)</pre>").unwrap();
    let told =
        told.captures(&dom).expect("the script ran")[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&told).unwrap()
}

/// Frames are drawn at once, so that nothing waits for a screen.
const FRAMES: &str = "<script>window.requestAnimationFrame = (draw) => draw(0);</script>";
/// Presses keys, and leaves in the page what the timeline said after each group.
const PRESS: &str = "
    const root = document.querySelector('.timeline'), states = [];
    const state = () => states.push({ ...root.dataset, title: document.title, output: root.querySelector('output').innerHTML });
    state();
    for (const keys of groups) {
        for (const key of keys) root.querySelector('.scroll').dispatchEvent(new KeyboardEvent('keydown', { key }));
        state();
    }
    const told = document.createElement('pre');
    told.id = 'told';
    told.textContent = JSON.stringify(states);
    document.body.append(told);";

fn number(told: &BTreeMap<String, String>, name: &str) -> i64 {
    told[name].parse().unwrap_or_else(|_| panic!("{name} in {told:?}"))
}

#[test]
#[ignore = "needs Chromium, on the PATH or named by STRATO_CHROMIUM"]
fn a_browser_draws_the_timeline_and_keys_move_it() {
    let page = page(&sample("tensor-parallel-rocm.json.gz"), "en");
    let keys: [&[&str]; 3] =
        [&["+", "+"], &["ArrowRight"], &["0", "ArrowDown", "ArrowDown", "ArrowDown", "]", "]", "]"]];
    let told = drawn(&page, &keys);
    let [first, near, moved, all] = told.as_slice() else { panic!("{told:?}") };
    assert!(number(first, "drawn") > 50 && number(first, "marks") >= number(first, "drawn"), "{first:?}");
    assert!(first["title"].starts_with("Stratoscope"));
    let span = |told: &BTreeMap<String, String>| number(told, "to") - number(told, "from");
    assert!((span(near) * 4 - span(first)).abs() < 8, "{first:?} {near:?}");
    assert!(number(near, "drawn") < number(first, "drawn"));
    assert!((number(moved, "from") - number(near, "from") - span(near) / 4).abs() < 4, "{moved:?}");
    // All that is held, and a kernel chosen: what it is and what launched it is told.
    assert_eq!(number(all, "from"), 0);
    assert!(number(all, "drawn") > number(first, "drawn"));
    assert_eq!(all["selected"].split(':').next(), Some("3"), "{all:?}");
    assert!(all["output"].contains(" ns") && all["output"].contains("launched by"), "{}", all["output"]);
}

#[test]
#[ignore = "needs Chromium, on the PATH or named by STRATO_CHROMIUM"]
fn a_browser_reads_hostile_names_as_names() {
    let directory = tempfile::tempdir().unwrap();
    let page = page(&hostile(directory.path()), "zh");
    let told = drawn(&page, &[&["0", "ArrowDown", "ArrowDown"]]);
    let last = &told[1];
    assert!(number(last, "drawn") > 20, "{last:?}");
    assert!(last["title"].starts_with("Stratoscope · evil<b>.json"), "{last:?}");
    assert!(last["output"].contains("&lt;img src=x") && !last["output"].contains("<img"), "{last:?}");
}
