//! The selected step taken apart.

use crate::common::screen::{LAUNCH_BOUND, TENSOR_PARALLEL, app, press, screen};

/// Every time of the selected step and of the median one stands in the panel once, and adds up to the step.
#[test]
fn a_step_against_the_median_one_adds_up() {
    let mut app = app(LAUNCH_BOUND);
    press(&mut app, "5 o");
    let shown = screen(&mut app, 120, 40);
    let panel: Vec<&str> = shown.lines().skip_while(|line| !line.contains(", the median one")).skip(2).collect();
    let numbers = |line: &str| -> Vec<i64> {
        let digits = |c: &char| c.is_ascii_digit() || matches!(c, '-' | '+');
        let exact = |part: &str| part.rsplit("  ").next()?.chars().filter(digits).collect::<String>().parse().ok();
        line.split(" ns").filter_map(exact).collect()
    };
    let mut rows: Vec<Vec<i64>> = panel.iter().map(|line| numbers(line)).filter(|row| row.len() == 3).collect();
    let whole = rows.pop().unwrap();
    assert!(rows.len() > 3, "{shown}");
    for column in 0..3 {
        assert_eq!(rows.iter().map(|row| row[column]).sum::<i64>(), whole[column], "{shown}");
    }
    assert!(rows.iter().chain([&whole]).all(|row| row[0] - row[1] == row[2]), "{shown}");
    assert!(whole[2] > 0, "the slowest step is slower than the median one: {shown}");
}

/// Two prompts that take a hundred times as long make one line of all decode steps.
#[test]
fn steps_are_shown_class_by_class() {
    let mut app = app(TENSOR_PARALLEL);
    press(&mut app, "5");
    let all = screen(&mut app, 120, 40);
    assert!(all.contains("class: all"), "{all}");
    press(&mut app, "b");
    let one = screen(&mut app, 120, 40);
    assert!(one.contains("class: 1 / ") && one != all, "{one}");
    insta::assert_snapshot!("steps_of_a_class", one);
    press(&mut app, "b b");
    assert_eq!(screen(&mut app, 120, 40), all);
}
