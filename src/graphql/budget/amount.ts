/** A number, or one that depends on the variables of a request. */
export type Amount = number | ((variables: Readonly<Record<string, unknown>> | null) => number);

/** The amount for these variables. */
export function amountFor(amount: Amount, variables: Readonly<Record<string, unknown>> | null): number {
  return typeof amount === 'number' ? amount : amount(variables);
}

/** The sum of two amounts. */
export function plus(one: Amount, other: Amount): Amount {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  return (variables) => amountFor(one, variables) + amountFor(other, variables);
}

/** The product of two amounts. */
export function times(one: Amount, other: Amount): Amount {
  if (one === 0 || other === 0) return 0;
  if (typeof one === 'number' && typeof other === 'number') return one * other;
  return (variables) => amountFor(one, variables) * amountFor(other, variables);
}
