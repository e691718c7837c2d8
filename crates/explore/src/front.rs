//! Pareto fronts: which points no other beats.

/// Whether each point is on the front: no other is as small in everything and smaller in something. Points that are equal in everything
/// are on it together. Each has as many figures; of all, smaller is better.
///
/// ```
/// use blindcore_explore::front::front;
///
/// let points = [vec![1.0, 9.0], vec![2.0, 8.0], vec![2.0, 9.0], vec![1.0, 9.0]];
/// assert_eq!(front(&points), [true, true, false, true]);
/// ```
#[must_use]
pub fn front(points: &[Vec<f64>]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let compare = |a: &usize, b: &usize| {
        let pairs = points[*a].iter().zip(&points[*b]);
        pairs.map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    order.sort_by(compare);
    // In this order a point is beaten by none behind it.
    let mut on: Vec<usize> = Vec::new();
    let mut result = vec![false; points.len()];
    for at in order {
        let point = &points[at];
        let beats = |other: &Vec<f64>| other != point && other.iter().zip(point).all(|(a, b)| a <= b);
        if !on.iter().any(|o| beats(&points[*o])) {
            result[at] = true;
            on.push(at);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::front;

    #[test]
    fn it_is_what_comparing_all_pairs_gives() {
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % 6
        };
        for _ in 0..50 {
            let points: Vec<Vec<f64>> = (0..40).map(|_| (0..3).map(|_| draw() as f64).collect()).collect();
            let beaten = |p: &Vec<f64>| points.iter().any(|o| o != p && o.iter().zip(p).all(|(a, b)| a <= b));
            let want: Vec<bool> = points.iter().map(|p| !beaten(p)).collect();
            assert_eq!(front(&points), want);
        }
    }
}
