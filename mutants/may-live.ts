/** Changes that no test notices, and why none needs to. `npm run mutants` prints their names. */
export const MAY_LIVE: readonly { why: string; mutants: readonly string[] }[] = [
  {
    why: 'The store is asked for what it does not have, finds nothing, and the result is the same.',
    mutants: [
      "src/keys/authorization/audit-access.ts: [actor.id, key?.id, before?.['…of id === 'string') → [actor.id, key?.id, before?.['…ter?.['createdBy']]",
      "src/keys/authorization/audit-access.ts: typeof id === 'string' → true",
      'src/keys/audit/compare.ts: ids.length === 0 → false',
      'src/keys/audit/compare.ts: reasonOf(key, known, began) === undefined → false',
      'src/features/transfer/export.ts: keys.length === MAX_PAGE_SIZE → true',
    ],
  },
  {
    why: 'It only saves time or memory: without it, the same is computed again, copied or kept.',
    mutants: [
      'src/keys/key/skeleton.ts: prototype === undefined → true',
      'src/keys/key/skeleton.ts: prototypes.set(character, prototype); → ;',
      'src/keys/basics/nearest.ts: word.slice(0, MAX_LENGTH).toUp…lice(0, MAX_LENGTH) → word.slice(0, MAX_LENGTH).toUpperCase()',
      'src/keys/basics/nearest.ts: word.slice(0, MAX_LENGTH) → word',
      'src/keys/permissions/permission-set.ts: known.set(grants, set); → ;',
      'src/features/scan/cli/secret-finder.ts: this.#rest.length > 0 → true',
      'src/features/scan/cli/secret-finder.ts: this.#rest.length > 0 → this.#rest.length >= 0',
      'src/keys/basics/text.ts: text.slice(0, maxLength * 8) → text',
      'src/features/transfer/lines.ts: length <= MAX_LINE_BYTES → true',
      'src/features/transfer/lines.ts: [] → ["Stryker was here"]',
    ],
  },
  {
    why: 'Only the types need it: what it rules out cannot be, or is ruled out by what follows.',
    mutants: [
      'src/keys/key/rotated-secret.ts: rotation && before.previousDigest !== null → rotation || before.previousDigest !== null',
      'src/keys/key/rotated-secret.ts: before.previousDigest !== null → true',
      'src/keys/key/use.ts: previousLastUsedAt !== null → true',
      'src/features/transfer/read-import.ts: !secret || name === null → false',
      'src/features/transfer/read-import.ts: !secret || name === null → !secret && name === null',
      'src/features/transfer/read-import.ts: name === null → false',
      'src/features/transfer/read-import.ts: instant !== undefined → true',
    ],
  },
  {
    why: 'Nobody reads it: it is replaced, or dropped as no valid item, or belongs to what is refused as a whole.',
    mutants: [
      'src/features/apply/declaration.ts: [] → ["Stryker was here"]',
      'src/features/apply/apply.ts: [] → ["Stryker was here"]',
      'src/keys/key/api-key.ts: [] → ["Stryker was here"]',
      'src/features/transfer/import.ts: false → true',
    ],
  },
  {
    why: 'Either value counts as the same there.',
    mutants: [
      'src/keys/basics/errors.ts: true → false',
      'src/keys/basics/time.ts: offset.toUpperCase() → offset.toLowerCase()',
      'src/features/transfer/export.ts: { creators: null } → {}',
      'src/features/transfer/read-import.ts: { return null; } → {}',
    ],
  },
];
