//! Terminals of every size, also of none, and while they are being pulled about.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::common::screen::{LAUNCH_BOUND, TENSOR_PARALLEL, VIEWS, app, buffer, press, screen};

#[test]
fn a_terminal_that_is_too_small_is_told_so() {
    let mut app = app(LAUNCH_BOUND);
    for (key, _) in VIEWS {
        press(&mut app, key);
        assert_eq!(screen(&mut app, 19, 3), "19x3 < 20x3\n\n");
        assert_eq!(screen(&mut app, 20, 2), "20x2 < 20x3\n");
        assert!(!screen(&mut app, 20, 3).contains("20x3"));
    }
    press(&mut app, "1");
    insta::assert_snapshot!("overview_20x3", screen(&mut app, 20, 3));
}

#[test]
fn no_small_size_harms_any_view_nor_what_lies_over_it() {
    for sample in [LAUNCH_BOUND, TENSOR_PARALLEL] {
        let mut app = app(sample);
        for (key, _) in VIEWS {
            for over in ["", "?", ":", "/"] {
                press(&mut app, key);
                press(&mut app, over);
                for height in 0..=8 {
                    for width in 0..=20 {
                        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
                        app.draw(&mut buf);
                    }
                }
                press(&mut app, if over.is_empty() { "e" } else { "esc" });
            }
        }
    }
}

/// Sizes as a window that is pulled about has them, with keys between them; what was seen before is seen again.
#[test]
fn a_storm_of_sizes_changes_nothing() {
    let mut app = app(TENSOR_PARALLEL);
    let mut state = 7u64;
    for (key, name) in VIEWS {
        press(&mut app, key);
        let before = screen(&mut app, 120, 40);
        for _ in 0..300 {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mut buf = Buffer::empty(Rect::new(0, 0, (state % 260) as u16, (state >> 32) as u16 % 80));
            app.draw(&mut buf);
        }
        // The place of the cursor and the selected row stay; what is seen around them may have moved.
        buffer(&mut app, 120, 40);
        press(&mut app, "G g");
        let after = screen(&mut app, 120, 40);
        press(&mut app, "1");
        press(&mut app, key);
        assert_eq!(screen(&mut app, 120, 40), after, "{name}");
        assert_eq!(before.lines().next(), after.lines().next(), "{name}");
    }
}
