//! How texts compare: without regard to case, whole or against a pattern.

/// The letter that stands for all its forms. Forms that take several letters (`ß` and `SS`) stay
/// different, so comparing never changes lengths.
fn folded(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    // Only the Turkic languages take the dotless i for a form of `I`.
    if letter == 'ı' {
        return letter;
    }
    let upper = only(letter.to_uppercase()).unwrap_or(letter);
    only(upper.to_lowercase()).unwrap_or(upper)
}

fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next();
    if letters.next().is_some() { None } else { first }
}

pub(super) fn is_same(left: &str, right: &str) -> bool {
    match left.is_ascii() && right.is_ascii() {
        true => left.eq_ignore_ascii_case(right),
        false => left.chars().map(folded).eq(right.chars().map(folded)),
    }
}

/// Whether the whole text matches a pattern in which `*` stands for any letters and `?` for one.
///
/// Only the last `*` seen is ever tried again: what an earlier one took was the least possible, and
/// taking more there would not help. The steps are at most the two lengths multiplied.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    matches_by(text, pattern, |wanted, letter| folded(wanted) == folded(letter))
}

/// The same, but letters of different case are different letters.
pub(crate) fn is_exactly_like(text: &str, pattern: &str) -> bool {
    matches_by(text, pattern, |wanted, letter| wanted == letter)
}

fn matches_by(text: &str, pattern: &str, is_same: impl Fn(char, char) -> bool) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut retry = None;
    loop {
        let text_here = text.clone();
        match (pattern.next(), text.next()) {
            (Some('*'), _) => {
                text = text_here;
                retry = Some((text.clone(), pattern.clone()));
                continue;
            }
            (None, None) => return true,
            (Some('?'), Some(_)) => continue,
            (Some(wanted), Some(letter)) if is_same(wanted, letter) => continue,
            // More of the text for an earlier `*` would leave even less for the rest of the pattern.
            (Some(_), None) => return false,
            (_, Some(_)) => {}
        }
        let Some((longer, after_star)) = &mut retry else { return false };
        if longer.next().is_none() {
            return false;
        }
        (text, pattern) = (longer.clone(), after_star.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_ignored_in_every_script() {
        for (left, right) in
            [("Ubuntu", "uBUNTU"), ("ÄÖ", "äö"), ("ς", "Σ"), ("K", "k"), ("ſ", "S"), ("ẞ", "ß")]
        {
            assert!(is_same(left, right), "{left} and {right}");
            assert!(is_like(left, right), "{left} like {right}");
        }
        for (left, right) in [("ß", "ss"), ("ı", "i"), ("İ", "i"), ("a", "a "), ("", "a"), ("e", "é")] {
            assert!(!is_same(left, right), "{left} and {right}");
        }
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (text, pattern) in [
            ("", ""),
            ("", "**"),
            ("gpu-a100-80g", "gpu-*-80G"),
            ("aXbXc", "a*X?"),
            ("abab", "*ab"),
            ("mississippi", "m*iss*i"),
            ("é", "?"),
            ("*", "*"),
            ("[a]\\", "[?]\\"),
        ] {
            assert!(is_like(text, pattern), "{text} like {pattern}");
        }
        for (text, pattern) in [("", "?"), ("a", ""), ("ab", "a"), ("ab", "b*"), ("abc", "a?"), ("aab", "*a")]
        {
            assert!(!is_like(text, pattern), "{text} not like {pattern}");
        }
    }

    #[test]
    fn many_stars_do_not_multiply_the_work() {
        let text = "a".repeat(4_000);
        assert!(!is_like(&text, &format!("{}b", "a*".repeat(500))));
        assert!(is_like(&text, &"a*".repeat(500)));
    }

    #[test]
    fn names_of_people_mind_the_case() {
        assert!(is_exactly_like("land-7", "land-*"));
        assert!(!is_exactly_like("Land-7", "land-*"));
    }
}
