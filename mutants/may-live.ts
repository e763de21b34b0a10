/** Changes that no test notices, and why none needs to. `npm run mutants` prints their names. */
export const MAY_LIVE: readonly { why: string; mutants: readonly string[] }[] = [
  {
    why: 'The store is asked for what it does not have, finds nothing, and the result is the same.',
    mutants: [
      "src/keys/authorization/audit-access.ts: [actor.id, key?.id, before?.['…of id === 'string') → [actor.id, key?.id, before?.['…ter?.['createdBy']]",
      "src/keys/authorization/audit-access.ts: typeof id === 'string' → true",
      'src/keys/audit/verify.ts: ids.length === 0 → false',
      'src/keys/audit/verify.ts: reasonOf(key, known, began) === undefined → false',
      'src/keys/transfer/transfer.ts: keys.length === MAX_PAGE_SIZE → true',
      'src/keys/transfer/import.ts: [] → ["Stryker was here"]',
    ],
  },
  {
    why: 'It only saves time or memory: without it, the same is computed again, copied or kept.',
    mutants: [
      'src/keys/key/skeleton.ts: prototype === undefined → true',
      'src/keys/key/skeleton.ts: prototypes.set(character, prototype); → ;',
      'src/keys/basics/nearest.ts: word.toUpperCase().slice(0, 64) → word.toUpperCase()',
      'src/keys/permissions/permission-set.ts: sets.set(permissions, set); → ;',
      'src/keys/secret/secret-finder.ts: this.#rest.length > 0 → true',
      'src/keys/secret/secret-finder.ts: this.#rest.length > 0 → this.#rest.length >= 0',
      'src/keys/basics/text.ts: text.slice(0, maxLength * 8) → text',
      'src/keys/transfer/read-import.ts: length <= MAX_LINE_BYTES → true',
      'src/keys/transfer/read-import.ts: [] → ["Stryker was here"]',
    ],
  },
  {
    why: 'Only the types need it: what it rules out cannot be, or is ruled out by what follows.',
    mutants: [
      'src/keys/changes/rotate.ts: previousDigest === null → false',
      'src/keys/key/rotated-secret.ts: rotation && before.previousDigest !== null → rotation || before.previousDigest !== null',
      'src/keys/key/rotated-secret.ts: before.previousDigest !== null → true',
      'src/keys/key/usage.ts: previousLastUsedAt !== null → true',
      'src/keys/transfer/import.ts: id !== undefined → true',
      'src/keys/transfer/read-import.ts: !secret || name === null → false',
      'src/keys/transfer/read-import.ts: !secret || name === null → !secret && name === null',
      'src/keys/transfer/read-import.ts: name === null → false',
      'src/keys/transfer/read-import.ts: instant !== undefined → true',
    ],
  },
  {
    why: 'Nobody reads it: it is replaced, or dropped as no valid item, or belongs to what is refused as a whole.',
    mutants: [
      'src/keys/transfer/declaration.ts: [] → ["Stryker was here"]',
      'src/keys/transfer/apply.ts: [] → ["Stryker was here"]',
      'src/keys/key/api-key.ts: [] → ["Stryker was here"]',
      'src/keys/transfer/import.ts: false → true',
    ],
  },
  {
    why: 'Either value counts as the same there.',
    mutants: [
      'src/keys/basics/errors.ts: true → false',
      'src/keys/basics/time.ts: offset.toUpperCase() → offset.toLowerCase()',
      'src/keys/transfer/transfer.ts: { creators: null } → {}',
      'src/keys/transfer/read-import.ts: { return null; } → {}',
    ],
  },
];
