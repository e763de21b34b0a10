import { OPERATOR } from '../../keys/authorization/index.ts';
import { findConfusableNames } from '../../keys/changes/index.ts';
import { MAX_NAME_LENGTH, normalizeName, validateName } from '../../keys/key/index.ts';
import type { KeyFinder } from '../../keys/repository/index.ts';
import { createSecretlessId, type RandomBytes } from '../../keys/secret/index.ts';

/** The number of random characters that distinguish keys of the same name. */
const MARK_LENGTH = 8;

/**
 * A name that is free and looks like no other: the given one, as far as it is valid as a name. If a key already has it,
 * or one that looks like it, random characters are appended, so that names can neither be stolen nor blocked.
 * @param otherwise the name if nothing valid is left of the given one
 * @param isMarked true to append random characters in any case
 */
export async function freeName(
  find: Pick<KeyFinder, 'findByName' | 'findConfusable'>,
  given: string,
  { otherwise, isMarked = false, randomBytes }: { otherwise: string; isMarked?: boolean; randomBytes: RandomBytes },
): Promise<string> {
  const allowed = given
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{M}\p{Nd} ]+/gu, ' ')
    .replaceAll(/ {2,}/g, ' ');
  const short = normalizeName(
    Array.from(allowed, (character) => character)
      .slice(0, MAX_NAME_LENGTH / 2)
      .join(''),
  );
  const called = validateName(short) ? otherwise : short;
  const marked = () => `${called} ${createSecretlessId(randomBytes).slice(-MARK_LENGTH)}`;
  for (let name = isMarked ? marked() : called; ; name = marked())
    if (!(await find.findByName(name)) && (await findConfusableNames(OPERATOR, find, [name])).length === 0) return name;
}
