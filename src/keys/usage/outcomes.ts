/**
 * How requests with a secret of a key end: the key was accepted; it lacks a permission, or came from where it may not;
 * it was over a limit; or it was not accepted at all, as it was disabled, has expired or got another secret.
 */
export const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'] as const;

/** How a request ended. */
export type Outcome = (typeof OUTCOMES)[number];

/** How many requests ended in which way. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>;

/** Of no requests. */
export const NO_REQUESTS: OutcomeCounts = { accepted: 0, forbidden: 0, limited: 0, refused: 0 };

/** The counts of two sets of requests together. */
export function sumOf(one: OutcomeCounts, other: OutcomeCounts): OutcomeCounts {
  return {
    accepted: one.accepted + other.accepted,
    forbidden: one.forbidden + other.forbidden,
    limited: one.limited + other.limited,
    refused: one.refused + other.refused,
  };
}
