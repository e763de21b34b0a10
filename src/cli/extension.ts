import type { SchemaExtension } from '../graphql/extension.ts';
import { createCatalog, HOST_RESOURCES } from '../keys/permissions/catalog.ts';
import { printable } from '../keys/text.ts';

/** What each field of a host's part must be: how it is said, and how it is checked. */
const FIELDS: Readonly<Record<string, readonly [allowed: string, isRight: (value: unknown) => boolean]>> = {
  resources: [
    'a list of names, or of { name, credentials? }',
    (value) => HOST_RESOURCES(value, 'resources') === undefined,
  ],
  typeDefs: ['SDL, a parsed document, or a list of them', (value) => isTypeDefs(value) || isList(value, isTypeDefs)],
  resolvers: [
    'an object, by type and field, or a function that returns it',
    (value) => isObject(value) || typeof value === 'function',
  ],
};
const ALLOWED = `It may return { ${Object.keys(FIELDS).join(', ')} }, each of which may be left out.`;

/**
 * Validates what a hook `svc-api:schema` returned: hooks are other people's JavaScript.
 * @throws Error that names the field, what it is, and what is allowed
 */
export function readExtension(result: unknown): SchemaExtension {
  if (!isObject(result)) throw new Error(`It returned ${kindOf(result)}. ${ALLOWED}`);
  for (const [field, value] of Object.entries(result)) {
    const [allowed, isRight] = (Object.hasOwn(FIELDS, field) && FIELDS[field]) || [];
    if (!isRight) throw new Error(`It returned "${printable(field)}", which is not a field. ${ALLOWED}`);
    if (value !== undefined && !isRight(value))
      throw new Error(`Its field "${field}" is ${kindOf(value)}; it must be ${allowed}.`);
  }
  const { resources, typeDefs, resolvers } = result as SchemaExtension;
  createCatalog({ resources });
  return { ...(resources && { resources }), ...(typeDefs && { typeDefs }), ...(resolvers && { resolvers }) };
}

function isTypeDefs(value: unknown): boolean {
  return typeof value === 'string' || (isObject(value) && value['kind'] === 'Document');
}

function isList(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a value is, in words, without the value itself. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (value === undefined) return 'nothing';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
