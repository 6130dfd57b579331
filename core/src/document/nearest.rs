//! Which known names somebody may have meant.

/// Comparing is quadratic in the length, so longer names are not compared.
const LENGTH_MAX: usize = 64;
/// Only so many known names are looked at.
const CANDIDATES_MAX: usize = 10_000;
const SUGGESTED_MAX: usize = 3;
const LISTED_MAX: usize = 24;

/// The known names closest to `name`, or all of them when none is close, as part of a sentence.
pub(crate) fn suggest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.take(CANDIDATES_MAX).collect();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .filter(|(distance, candidate)| is_near(name, candidate, *distance))
        .collect();
    near.sort_unstable();
    near.truncate(SUGGESTED_MAX);
    let shown: Vec<&str> = match near.is_empty() {
        true => known.iter().copied().take(LISTED_MAX).collect(),
        false => near.into_iter().map(|(_, candidate)| candidate).collect(),
    };
    let quoted: Vec<String> = shown.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    match quoted.as_slice() {
        [] => "none at all".into(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn is_near(name: &str, candidate: &str, distance: usize) -> bool {
    let letters = name.chars().count().max(candidate.chars().count());
    distance <= letters / 3 || (!name.is_empty() && candidate.starts_with(name))
}

/// How many letters must be changed, added or removed to get from one to the other.
fn distance(left: &str, right: &str) -> usize {
    if left.len() > LENGTH_MAX || right.len() > LENGTH_MAX {
        return usize::MAX;
    }
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_name() {
        let known = ["window", "window_cap", "limits"];
        assert_eq!(suggest("windwo", known.into_iter()), "`window`");
        assert_eq!(suggest("lim", known.into_iter()), "`limits`");
        assert_eq!(suggest("zzz", known.into_iter()), "`window`, `window_cap` or `limits`");
        assert_eq!(suggest("x", [].into_iter()), "none at all");
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
