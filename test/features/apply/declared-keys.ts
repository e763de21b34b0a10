import { readDeclaration } from '../../../src/features/apply/declaration.ts';
import { type Actor, OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { ApplyOptions } from '../../../src/features/apply/apply.ts';
import type { KeysService } from '../../../src/keys/service/service.ts';
import { Declarations } from '../../../src/features/apply/apply.ts';

/** Keys to declare. */
export const A = { name: 'A', roles: ['GUEST'] };
export const B = { name: 'B', permissions: ['DOCKER:READ_ANY'] };
export const C = { name: 'C', roles: ['VIEWER'] };

/** Applies declared keys, by default as the operator. */
export async function applyDeclared(
  keys: KeysService,
  declared: readonly object[],
  options: ApplyOptions = {},
  actor: Actor = OPERATOR,
) {
  return keys.feature(Declarations).apply(await readDeclaration({ keys: declared }, keys.catalog), options, actor);
}
