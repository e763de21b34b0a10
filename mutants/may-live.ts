/** Changes that no test notices, and why none needs to. `npm run mutants` prints their names. */
export const MAY_LIVE: readonly { why: string; mutants: readonly string[] }[] = [
  {
    why: 'The store is asked for what it does not have, finds nothing, and the result is the same.',
    mutants: [
      "src/keys/authorization/audit-access.ts: [actor.id, key?.id, before?.['…of id === 'string') → [actor.id, key?.id, before?.['…ter?.['createdBy']]",
      "src/keys/authorization/audit-access.ts: typeof id === 'string' → true",
      'src/keys/audit/compare.ts: ids.length === 0 → false',
      'src/keys/audit/compare.ts: reasonOf(key, known, began) === undefined → false',
    ],
  },
  {
    why: 'It only saves time or memory: without it, the same is computed again or copied.',
    mutants: [
      'src/keys/permissions/permission-set.ts: sets.set(permissions, set); → ;',
      'src/keys/secret/secret-finder.ts: this.#rest.length > 0 → true',
      'src/keys/secret/secret-finder.ts: this.#rest.length > 0 → this.#rest.length >= 0',
    ],
  },
];
