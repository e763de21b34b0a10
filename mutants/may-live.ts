/** Changes that no test notices, and why none needs to. `npm run mutants` prints their names. */
export const MAY_LIVE: readonly { why: string; mutants: readonly string[] }[] = [];
