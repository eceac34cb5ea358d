//! A small server that answers as engines do, and as they should not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use super::*;

/// Pieces that a server sends, each after a while.
type Answer = Vec<(Duration, Vec<u8>)>;

/// A server that answers one connection after the other with these bytes, part by part with a pause before each.
fn server(answers: Vec<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            for (pause, part) in answer {
                thread::sleep(pause);
                if stream.write_all(&part).is_err() {
                    break;
                }
            }
        }
    });
    format!("http://{address}/metrics")
}

fn page(text: &str) -> Answer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nContent-Type: text/plain\r\n\r\n", text.len());
    vec![(Duration::ZERO, (head + text).into_bytes())]
}

type Told = BTreeMap<&'static str, Reading<f64>>;

fn look(server: &mut Server, at: Ns) -> Told {
    let mut told = BTreeMap::new();
    server.look(at, &mut |counter, value| drop(told.insert(counter.name, value)));
    told
}

fn value(told: &Told, name: &str) -> f64 {
    match &told[name] {
        Reading::Value(value) => *value,
        Reading::Unavailable(reason) => panic!("{name}: {reason}"),
    }
}

fn reason(told: &Told, name: &str) -> String {
    match &told[name] {
        Reading::Value(value) => panic!("{name}: {value}"),
        Reading::Unavailable(reason) => reason.clone(),
    }
}

/// As vLLM 0.11 writes it, with few buckets.
fn vllm(tokens: u32, preempted: u32, first: [u32; 3]) -> String {
    let [half, one, all] = first;
    let labels = "engine=\"0\",model_name=\"m\"";
    format!(
        "# HELP vllm:num_requests_running Number of requests in model execution batches.\n\
         # TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{{labels}}} 3.0\n\
         vllm:num_requests_running{{engine=\"1\",model_name=\"m\"}} 2.0\n\
         vllm:num_requests_waiting{{{labels}}} 7.0\n\
         vllm:kv_cache_usage_perc{{{labels}}} 0.25\n\
         vllm:kv_cache_usage_perc{{engine=\"1\",model_name=\"m\"}} 0.75\n\
         vllm:num_preemptions_total{{{labels}}} {preempted}.0\n\
         vllm:generation_tokens_total{{{labels}}} {tokens}.0\n\
         this line is no sample\n\
         vllm:time_to_first_token_seconds_bucket{{{labels},le=\"0.5\"}} {half}.0\n\
         vllm:time_to_first_token_seconds_bucket{{{labels},le=\"1.0\"}} {one}.0\n\
         vllm:time_to_first_token_seconds_bucket{{{labels},le=\"+Inf\"}} {all}.0\n\
         vllm:time_to_first_token_seconds_count{{{labels}}} {all}.0\n"
    )
}

#[test]
fn two_pages_give_rates_and_quantiles_of_the_time_between_them() {
    let url = server(vec![page(&vllm(100, 4, [5, 9, 9])), page(&vllm(350, 6, [5, 19, 19]))]);
    let mut server = Server::new(&url, PATIENCE).unwrap();
    let first = look(&mut server, 0);
    assert_eq!((value(&first, "requests_running"), value(&first, "requests_waiting")), (5.0, 7.0));
    assert_eq!((value(&first, "kv_cache_use"), value(&first, "scrape_bad_lines")), (0.75, 1.0));
    assert!(reason(&first, "generated_tokens").contains("two pages"));
    assert!(reason(&first, "ttft_p50").contains("two pages"));
    assert!(reason(&first, "prompt_tokens").contains("vllm:prompt_tokens_total"));
    let second = look(&mut server, 500_000_000);
    assert_eq!((value(&second, "generated_tokens"), value(&second, "preemptions")), (500.0, 4.0));
    assert_eq!(value(&second, "ttft_p50"), 0.75e9, "ten requests between half a second and one");
    assert!(reason(&second, "tpot_p50").contains("inter_token_latency"));
    assert!(value(&second, "scrape_time") > 0.0);
}

#[test]
fn what_is_no_number_is_absent_with_its_reason_and_no_bad_line() {
    let odd = "vllm:num_requests_running 2\nvllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n\
        vllm:kv_cache_usage_perc{engine=\"1\"} NaN\nvllm:generation_tokens_total +Inf\n\
        vllm:time_to_first_token_seconds_bucket{le=\"0.5\"} NaN\n\
        vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 3\n\
        vllm:time_to_first_token_seconds{quantile=\"0.5\"} NaN\n";
    let url = server(vec![page(odd), page(odd)]);
    let mut server = Server::new(&url, PATIENCE).unwrap();
    look(&mut server, 0);
    let told = look(&mut server, 1_000_000_000);
    assert_eq!((value(&told, "requests_running"), value(&told, "scrape_bad_lines")), (2.0, 0.0));
    assert_eq!(reason(&told, "requests_waiting"), "the page gives NaN for vllm:num_requests_waiting");
    assert_eq!(reason(&told, "kv_cache_use"), "the page gives NaN for vllm:kv_cache_usage_perc");
    assert_eq!(reason(&told, "generated_tokens"), "the page gives inf for vllm:generation_tokens_total");
    assert_eq!(reason(&told, "ttft_p99"), "the page gives NaN for vllm:time_to_first_token_seconds");
}

#[test]
fn other_engines_are_known_by_their_names() {
    let sglang =
        "sglang:num_running_reqs{model_name=\"m\"} 162.0\nsglang:token_usage 0.28\nsglang:num_queue_reqs 2826\n";
    let trtllm = "trtllm_num_requests_running 2\ntrtllm_kv_cache_utilization 0.5\n";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let parts = vec![
        (Duration::ZERO, chunked),
        (Duration::from_millis(5), format!("{:x}\r\n{}\r\n", 10, &trtllm[..10]).into_bytes()),
        (Duration::from_millis(5), format!("{:x}\r\n{}\r\n0\r\n\r\n", trtllm.len() - 10, &trtllm[10..]).into_bytes()),
    ];
    let url = server(vec![page(sglang), parts]);
    let mut server = Server::new(&url, PATIENCE).unwrap();
    let first = look(&mut server, 0);
    assert_eq!((value(&first, "requests_running"), value(&first, "requests_waiting")), (162.0, 2826.0));
    assert!(reason(&first, "preemptions").contains("SGLang has no metric"));
    let second = look(&mut server, 1);
    assert_eq!((value(&second, "requests_running"), value(&second, "kv_cache_use")), (2.0, 0.5));
    // Nothing listens any more.
    let third = look(&mut server, 2);
    assert!(reason(&third, "requests_running").contains("http://127.0.0.1"), "{third:?}");
}

#[test]
fn what_is_no_page_has_its_reason() {
    let raw = |bytes: &[u8]| vec![(Duration::ZERO, bytes.to_vec())];
    let cases: [(Answer, &str); 8] = [
        (raw(b"HTTP/1.1 404 Not Found\r\n\r\n"), "404"),
        (raw(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n"), "302"),
        (raw(b"220 ftp ready\r\n\r\n"), "no HTTP"),
        (raw(b""), "without an answer"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), "5 of 100 bytes"),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), "within a chunk"),
        (page("process_cpu_seconds_total 3\n"), "known engine"),
        (page("<html>hello</html>"), "holds no metric"),
    ];
    for (answer, expected) in cases {
        let mut server = Server::new(&server(vec![answer]), PATIENCE).unwrap();
        let told = look(&mut server, 0);
        assert!(reason(&told, "requests_running").contains(expected), "{expected}: {told:?}");
    }
}

/// Every way in which a server was seen to misbehave ends in time, in bounded memory, and with a reason.
#[test]
fn a_server_that_misbehaves_ends_in_time_with_a_reason() {
    let raw = |bytes: &[u8]| vec![(Duration::ZERO, bytes.to_vec())];
    let ok = |head: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n");
        vec![(Duration::ZERO, [head.as_bytes(), body].concat())]
    };
    let endless = |part: &[u8]| (0..200).map(|_| (Duration::ZERO, part.repeat(1 << 12))).collect::<Answer>();
    let slow = |part: &[u8]| (0..100).map(|_| (Duration::from_millis(50), part.to_vec())).collect::<Answer>();
    let after = |mut head: Answer, rest: Answer| {
        head.extend(rest);
        head
    };
    let gzip = [&b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..], &[0xff; 4096]].concat();
    let cases: Vec<(&str, Answer)> = vec![
        ("a head without end", after(raw(b"HTTP/1.1 200 OK\r\n"), endless(b"X-A: b\r\n"))),
        ("one header of megabytes", after(raw(b"HTTP/1.1 200 OK\r\nX: "), endless(b"aaaaaaaa"))),
        ("a status without end", after(raw(b"HTTP/1.1 "), endless(b"2"))),
        ("a head that drips", after(raw(b"HTTP/1.1 200 OK\r\n"), slow(b"A: b\r\n"))),
        ("a body that drips", after(ok("Content-Length: 100000\r\n", b""), slow(b"#"))),
        ("silence after the head", after(ok("Content-Length: 10\r\n", b""), vec![(Duration::from_secs(3), vec![])])),
        ("silence", vec![(Duration::from_secs(3), vec![])]),
        ("a redirect to itself", raw(b"HTTP/1.1 301 Moved\r\nLocation: /metrics\r\n\r\n")),
        ("a redirect elsewhere", raw(b"HTTP/1.1 307 Moved\r\nLocation: http://example.invalid/\r\n\r\n")),
        ("a key that is wanted", raw(b"HTTP/1.1 401 Unauthorized\r\n\r\n")),
        ("an error of the server", raw(b"HTTP/1.1 500 Oh\r\n\r\nvllm:num_requests_running 1\n")),
        ("a status that is no number", raw(b"HTTP/1.1 fine\r\n\r\n")),
        ("a length that is too long", ok("Content-Length: 999\r\n", b"a 1\n")),
        ("a length that is negative", ok("Content-Length: -5\r\n", b"a 1\n")),
        ("a length beyond every number", ok("Content-Length: 99999999999999999999999\r\n", b"a 1\n")),
        ("chunks of no number", ok("Transfer-Encoding: chunked\r\n", b"zz\r\nab\r\n0\r\n\r\n")),
        ("a chunk beyond every number", ok("Transfer-Encoding: chunked\r\n", b"ffffffffffffffff\r\nab\r\n")),
        ("a chunk that is cut", ok("Transfer-Encoding: chunked\r\n", b"ff\r\nab")),
        ("compressed bytes that nobody asked for", ok("Content-Encoding: gzip\r\n", &gzip)),
        ("binary", ok("", &[0, 159, 146, 150].repeat(1000))),
        ("an empty page", ok("Content-Length: 0\r\n", b"")),
        ("one line without end", after(ok("", b""), endless(b"aaaaaaaa"))),
        ("a page of another kind", ok("", b"{\"status\": \"ok\"}")),
    ];
    assert_eq!(cases.len(), 23);
    for (what, answer) in cases {
        let mut server = Server::new(&server(vec![answer]), Duration::from_millis(500)).unwrap();
        let began = Instant::now();
        let told = look(&mut server, 0);
        assert!(began.elapsed() < Duration::from_secs(20), "{what} took {:?}", began.elapsed());
        assert!(!reason(&told, "requests_running").is_empty(), "{what}: {told:?}");
    }
}

#[test]
fn a_slow_server_is_given_up_and_an_endless_one_cut() {
    let drip = (0..100).map(|_| (Duration::from_millis(40), b"HTTP/1.1 200 OK\r\nX: y\r\n".to_vec())).collect();
    let mut slow = Server::new(&server(vec![drip]), Duration::from_millis(200)).unwrap();
    let began = Instant::now();
    let told = look(&mut slow, 0);
    assert!(reason(&told, "requests_running").contains("0.2 s"), "{told:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
    let line = b"trtllm_num_requests_running 1\n".repeat(1 << 15);
    let mut endless = vec![(Duration::ZERO, b"HTTP/1.1 200 OK\r\n\r\n".to_vec())];
    endless.extend((0..12).map(|_| (Duration::ZERO, line.clone())));
    let mut cut = Server::new(&server(vec![endless]), PATIENCE * 10).unwrap();
    let told = look(&mut cut, 0);
    assert_eq!(value(&told, "requests_running"), 100_000.0, "samples beyond the limit are bad lines");
    assert!(value(&told, "scrape_bad_lines") > 0.0);
}
