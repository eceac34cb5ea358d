//! What of command lines, process names and variables is not kept: secrets, and the names of people in paths to their homes. A
//! capture is handed around; what a program was started with need not be known for it.

/// What stands in the place of a secret.
pub const HIDDEN: &str = "***";

/// A variable whose name contains one of these holds a secret, whatever else its name says.
const NAMES: [&str; 16] = [
    "TOKEN",
    "KEY",
    "SECRET",
    "PASS",
    "PWD",
    "AUTH",
    "CREDENTIAL",
    "COOKIE",
    "BEARER",
    "DSN",
    "JWT",
    "SESSION",
    "PRIVATE",
    "SIGNATURE",
    "LOGIN",
    "CERT",
];

/// Words of an option's name that announce a secret. Whole words: `--max-tokens` and `--tokenizer` are none.
const WORDS: [&str; 20] = [
    "token",
    "key",
    "secret",
    "pass",
    "passwd",
    "password",
    "passphrase",
    "pwd",
    "auth",
    "authorization",
    "credential",
    "credentials",
    "cookie",
    "bearer",
    "dsn",
    "jwt",
    "session",
    "private",
    "signature",
    "login",
];

/// Ends of a word that announce one all the same, as in `--apikey`.
const ENDS: [&str; 7] = ["apikey", "accountkey", "accesskey", "secretkey", "token", "secret", "password"];

/// Parameters of an address that sign it, beside those that [`WORDS`] know: of Azure's shared access and of older AWS and Google
/// links.
const SIGNS: [&str; 3] = ["sig", "AWSAccessKeyId", "GoogleAccessId"];

/// How secrets begin that their makers mark as such: OpenAI, xAI, Groq, NVIDIA, Hugging Face, GitHub, GitLab, Slack, npm, PyPI, Google
/// (keys and access tokens), AWS, and JSON web tokens.
const MARKS: [&str; 22] = [
    "sk-",
    "xai-",
    "gsk_",
    "nvapi-",
    "hf_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "npm_",
    "pypi-",
    "AIza",
    "ya29.",
    "AKIA",
    "ASIA",
    "eyJ",
];

/// What a key in the form of PEM begins and ends with.
const PEM: [&str; 2] = ["-----BEGIN", "-----END"];
/// Shortest text that `Basic` announces as a login; `a:b` in base64 and more.
const LOGIN: usize = 8;

/// Shortest text that such a mark makes a secret.
const MARKED: usize = 16;

/// Whether a variable of this name holds a secret.
pub fn is_secret_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    NAMES.iter().any(|part| upper.contains(part))
}

/// A command line, or a process name that is one, as it may be kept: without values of secret options and variables, without
/// logins in addresses, without marked secrets, and without the names of people in paths.
pub fn kept(line: &str) -> String {
    let line = &without_pem(line);
    let mut out = String::with_capacity(line.len());
    let mut hides = false;
    let mut before = "";
    for part in line.split_inclusive(char::is_whitespace) {
        let word = part.trim_end_matches(char::is_whitespace);
        let space = part.get(word.len()..).unwrap_or_default();
        let bare = word.trim_matches(['"', '\'']);
        let is_option = bare.starts_with('-');
        if is_login(before, bare) {
            out.push_str(&word.replace(bare, HIDDEN));
            before = "";
        } else if hides && !bare.is_empty() && !is_option {
            // The scheme of an `Authorization` is none; what follows it is.
            let is_scheme = ["bearer", "basic", "token"].contains(&bare.to_ascii_lowercase().as_str());
            out.push_str(&if is_scheme { word.to_owned() } else { word.replace(bare, HIDDEN) });
            hides = is_scheme;
        } else {
            out.push_str(&shown(word, bare));
            let is_name = (is_option && !bare.contains('=')) || bare.ends_with(':');
            let scheme = bare.rsplit(':').next().unwrap_or(bare);
            let is_basic = scheme.eq_ignore_ascii_case("basic");
            let announces = is_name && is_secret_option(bare) || is_basic && scheme != bare;
            hides = scheme.eq_ignore_ascii_case("bearer") || announces;
            before = if is_basic { "Basic" } else { bare };
        }
        out.push_str(space);
    }
    without_homes(&out)
}

/// Whether a word is a login by the short option before it: `-u name:password`, and `-p password` unless it is a port or a path.
fn is_login(option: &str, word: &str) -> bool {
    let is_port = || word.bytes().all(|byte| byte.is_ascii_digit() || b":./-".contains(&byte));
    match option {
        "-u" | "--user" | "--proxy-user" => word.contains(':'),
        // The word is an English one too; what follows the scheme is base64.
        "Basic" => {
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
            let mixed = word.ends_with('=') || word.bytes().any(|byte| byte.is_ascii_digit());
            word.len() >= LOGIN && mixed && word.bytes().all(is_base64)
        }
        "-p" => !word.is_empty() && !word.starts_with('-') && !word.contains('/') && !is_port(),
        _ => false,
    }
}

/// Whether an option, or a header with a colon, announces a secret.
fn is_secret_option(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| WORDS.contains(&word) || ENDS.iter().any(|end| word.ends_with(end)))
}

/// A text without keys in the form of PEM.
fn without_pem(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, key)) = rest.split_once(PEM[0]) {
        out.push_str(before);
        out.push_str(HIDDEN);
        let after = key.split_once(PEM[1]).and_then(|(_, end)| end.split_once("-----"));
        rest = after.map_or("", |(_, after)| after);
    }
    out + rest
}

/// A word whose value is not announced by the one before it.
fn shown(word: &str, bare: &str) -> String {
    // Connection strings, and queries without their address.
    let between = if word.contains("://") { &[';'][..] } else { &[';', '&'] };
    if bare.contains('=') && bare.contains(between) {
        let parts = bare.split_inclusive(between).map(|part| {
            let value = part.trim_end_matches(between);
            shown(part, value)
        });
        return word.replacen(bare, &parts.collect::<String>(), 1);
    }
    if let Some((name, value)) = bare.split_once('=')
        && !value.is_empty()
        && (is_secret_option(name) || SIGNS.iter().any(|sign| name.eq_ignore_ascii_case(sign)))
    {
        return word.replacen(&format!("={value}"), &format!("={HIDDEN}"), 1);
    }
    let value = bare.rsplit('=').next().unwrap_or(bare).trim_matches(['"', '\'']);
    let marked = value.rsplit(':').next().unwrap_or(value);
    if marked.len() >= MARKED && MARKS.iter().any(|mark| marked.starts_with(mark)) {
        return word.replace(marked, HIDDEN);
    }
    if word.contains("://") {
        return address(word);
    }
    // A header, as in `--header=Cookie:value`.
    if let Some((name, value)) = value.split_once(':')
        && !value.is_empty()
        && is_secret_option(name)
    {
        return word.replacen(&format!(":{value}"), &format!(":{HIDDEN}"), 1);
    }
    word.to_owned()
}

/// An address without its login and without what its query signs it with.
fn address(word: &str) -> String {
    let (place, query) = word.split_once('?').map_or((word, None), |(place, query)| (place, Some(query)));
    let mut out = match place.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://{HIDDEN}@{host}"),
        None => place.to_owned(),
    };
    for (i, part) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if i == 0 { '?' } else { '&' });
        match part.split_once('=') {
            Some((name, _)) if is_secret_option(name) || SIGNS.iter().any(|sign| name.eq_ignore_ascii_case(sign)) => {
                out.push_str(&format!("{name}={HIDDEN}"));
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// A text in which the homes of people are `~`.
pub fn without_homes(text: &str) -> String {
    let text = without_profiles(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let begins = |out: &str| !out.ends_with(|c: char| c.is_alphanumeric() || "/._-~".contains(c));
    while let Some(at) = rest.find('/') {
        let (before, path) = rest.split_at(at);
        out.push_str(before);
        match home(path).filter(|_| begins(&out)) {
            Some(length) => {
                out.push('~');
                rest = path.get(length..).unwrap_or_default();
            }
            None => {
                out.push('/');
                rest = path.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// A text in which the homes of people on Windows are `~`.
fn without_profiles(text: &str) -> String {
    const BASE: &str = r":\Users\";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, path)) = rest.split_once(BASE) {
        let length = path.find(|c: char| !(c.is_alphanumeric() || "._- ".contains(c))).unwrap_or(path.len());
        let drive = before.char_indices().next_back().filter(|(_, c)| c.is_ascii_alphabetic());
        match drive.and_then(|(at, _)| before.get(..at)) {
            Some(before) => out.extend([before, "~"]),
            None => out.extend([before, BASE, path.get(..length).unwrap_or_default()]),
        }
        rest = path.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Folders below the root in which homes lie at most, as in `/data/home/alice`.
const BELOW: usize = 2;

/// Bytes of the home that a path begins with.
fn home(path: &str) -> Option<usize> {
    let end = |from: usize| {
        let name = path.get(from..)?;
        let length = name.find(|c: char| !(c.is_alphanumeric() || "._-@".contains(c))).unwrap_or(name.len());
        (length > 0).then_some(from + length)
    };
    if let Some(rest) = path.strip_prefix("/root") {
        return rest
            .chars()
            .next()
            .is_none_or(|c| !(c.is_alphanumeric() || "._-".contains(c)))
            .then_some("/root".len());
    }
    let whole = path.find(|c: char| !(c.is_alphanumeric() || "/._-@".contains(c))).unwrap_or(path.len());
    let path = path.get(..whole)?;
    let base = |base: &str| {
        path.find(base)
            .filter(|at| path.get(..*at).is_some_and(|before| before.matches('/').count() <= BELOW))
            .map(|at| at + base.len())
    };
    ["/home/", "/Users/"].into_iter().filter_map(base).min().and_then(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_keep_what_says_how_a_program_ran_and_no_secret() {
        for (line, expected) in [
            ("python serve.py --api-key X --tp 8", "python serve.py --api-key *** --tp 8"),
            ("python serve.py --api-key=X --tp 8", "python serve.py --api-key=*** --tp 8"),
            ("vllm serve m --max-tokens 8 --tokenizer t", "vllm serve m --max-tokens 8 --tokenizer t"),
            ("VLLM_API_KEY=sk python x.py", "VLLM_API_KEY=*** python x.py"),
            ("run --hf-token abc --quiet", "run --hf-token *** --quiet"),
            ("run --token --quiet", "run --token --quiet"),
            ("run --apikey abc", "run --apikey ***"),
            ("curl -H 'Authorization: Bearer abc' url", "curl -H 'Authorization: Bearer ***' url"),
            ("curl -H \"Cookie: abc\" url", "curl -H \"Cookie: ***\" url"),
            ("get https://me:pw@host/x", "get https://***@host/x"),
            ("run --proxy=http://me:pw@host", "run --proxy=http://***@host"),
            ("run hf_abcdefghijklmnopqrst", "run ***"),
            ("python /home/alice/x.py --out=/root/y /rooted/z", "python ~/x.py --out=~/y /rooted/z"),
            ("sh -c 'read line; echo \"got $line\"'", "sh -c 'read line; echo \"got $line\"'"),
            ("get https://h/x?sig=abc&v=1&X-Amz-Signature=abc", "get https://h/x?sig=***&v=1&X-Amz-Signature=***"),
            ("get https://me:pw@h/x?a=b@c", "get https://***@h/x?a=b@c"),
            ("curl -u bob:pw url", "curl -u *** url"),
            ("python -u x.py --user bob", "python -u x.py --user bob"),
            ("sshpass -p pw ssh -p 22 host", "sshpass -p *** ssh -p 22 host"),
            ("docker run -p 8000:8000 -p -x", "docker run -p 8000:8000 -p -x"),
            ("mkdir -p /data/x", "mkdir -p /data/x"),
            ("curl --header=Cookie:abc -H 'X-Api-Key:abc'", "curl --header=Cookie:*** -H 'X-Api-Key:***'"),
            ("run cuda:0 std::sort", "run cuda:0 std::sort"),
            ("run nvapi-abcdefghijklmnop AIzaabcdefghijklmnop", "run *** ***"),
            ("run --x=ya29.abcdefghijklmnop k:xai-abcdefghijklmnop", "run --x=*** k:***"),
            ("run xoxp-abcdefghijklmnop npm_abcdefghijklmnop", "run *** ***"),
            ("A=https;AccountName=n;AccountKey=ab==;E=core.net", "A=https;AccountName=n;AccountKey=***;E=core.net"),
            ("get 'sv=1&sig=ab%3D&se=2' sig=abc", "get 'sv=1&sig=***&se=2' sig=***"),
            ("-H Authorization:Basic YWxhZGRpbjpvcGVu", "-H Authorization:*** ***"),
            ("send Basic dXNlcjpwYXNz1g== x", "send Basic *** x"),
            ("Basic training of a model", "Basic training of a model"),
            ("x -----BEGIN RSA PRIVATE KEY----- MII abc -----END RSA PRIVATE KEY----- y", "x *** y"),
            ("", ""),
        ] {
            assert_eq!(kept(line), expected);
        }
    }

    #[test]
    fn homes_are_shortened_wherever_a_path_begins() {
        for (text, expected) in [
            ("/home/alice/.nv/cache:/Users/bob", "~/.nv/cache:~"),
            ("/data/home/alice/x", "~/x"),
            ("/mnt/nfs/home/alice/x", "~/x"),
            ("/usr/lib/python3/site-packages/home/x.py", "/usr/lib/python3/site-packages/home/x.py"),
            (r"C:\Users\alice\x.py(3): f", r"~\x.py(3): f"),
            ("/home/", "/home/"),
            ("/opt/x", "/opt/x"),
        ] {
            assert_eq!(without_homes(text), expected);
        }
    }

    #[test]
    fn variables_are_known_by_any_part_of_their_names() {
        for name in ["NCCL_PWD", "x_cookie", "PG_DSN", "TORCH_JWT", "CUDA_BEARER", "VLLM_SESSION_ID", "A_PRIVATE_B"] {
            assert!(is_secret_variable(name), "{name}");
        }
        assert!(!is_secret_variable("NCCL_ALGO") && !is_secret_variable("CUDA_VISIBLE_DEVICES"));
    }
}
