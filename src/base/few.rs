//! A list that is nearly always of one item and then needs no memory of its own.

/// None, one or more items, in the order in which they were pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Few<T> {
    /// Nothing.
    #[default]
    None,
    /// One item.
    One(T),
    /// Two or more.
    More(Vec<T>),
}

impl<T> Few<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(item),
            Self::One(first) => Self::More(vec![first, item]),
            Self::More(mut items) => {
                items.push(item);
                Self::More(items)
            }
        };
    }

    /// The items.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(item) => std::slice::from_ref(item),
            Self::More(items) => items,
        }
    }

    /// The items, to be changed.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Self::None => &mut [],
            Self::One(item) => std::slice::from_mut(item),
            Self::More(items) => items,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(mut items: Vec<T>) -> Self {
        match items.len() {
            0 | 1 => items.pop().map_or(Self::None, Self::One),
            _ => Self::More(items),
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, more) = match self {
            Self::None => (None, Vec::new()),
            Self::One(item) => (Some(item), Vec::new()),
            Self::More(items) => (None, items),
        };
        one.into_iter().chain(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_behaves_as_a_vector() {
        let mut few = Few::default();
        let mut model = Vec::new();
        for item in 0..5 {
            assert_eq!(
                (few.as_slice(), few.is_empty()),
                (&model[..], model.is_empty())
            );
            assert_eq!(few.clone().into_iter().collect::<Vec<_>>(), model);
            assert_eq!(Few::from(model.clone()), few);
            few.push(item);
            model.push(item);
        }
        few.as_mut_slice()[0] = 9;
        assert_eq!((few.as_slice()[0], few.len()), (9, 5));
    }
}
