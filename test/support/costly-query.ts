import {
  getNamedType,
  getNullableType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  isCompositeType,
  isEnumType,
  isListType,
  isObjectType,
  isRequiredArgument,
} from 'graphql';
import type { Random } from './random.ts';

const TEXTS = ['x', 'Key 7', 'zzz', 'ADMIN', '2024-01-02T00:00:00Z'];
const DAY = 86_400_000;

/** A query with more aliases is refused before execution. */
const MAX_ALIASES = 100;
const MAX_FIELDS = 900;

/**
 * Generates expensive valid queries: many aliases, long pages, all filters, deep selections.
 * @param now the server's time, in milliseconds since 1970
 */
export function costlyQuery(schema: GraphQLSchema, random: Random, now = Date.now()): string {
  const times = [TEXTS.at(-1), ...[89, 729].map((days) => new Date(now - days * DAY).toISOString())];
  const pageSize = random.pick([1, 10, 50, 100, 200, 500]);
  const repeats = random.pick([1, 1, 2, 4, 10, 30, 90]);
  let aliases = 0;
  let all = 0;
  return selectionOf(schema.getQueryType()!, repeats);

  function selectionOf(type: GraphQLObjectType, copies: number): string {
    const fields = random.some(Object.values(type.getFields()), type === schema.getQueryType() ? 2 : 8);
    const count = random.chance(0.5) ? copies : 1;
    const parts = fields.flatMap((field) => Array.from({ length: count }, (_, index) => textOf(field, index, copies)));
    return `{ __typename ${parts.join(' ')} }`;
  }

  function textOf(field: GraphQLField<unknown, unknown>, index: number, copies: number): string {
    if (all >= MAX_FIELDS || (index > 0 && aliases >= MAX_ALIASES)) return '';
    if (index > 0) aliases += 1;
    all += isCompositeType(getNamedType(field.type)) ? 2 : 1;
    const alias = index > 0 ? `a${aliases}: ` : '';
    const type = getNamedType(field.type);
    const isGiven = (arg: GraphQLArgument) => arg.name === 'first' || isRequiredArgument(arg) || random.chance(0.3);
    const given = field.args.filter(isGiven).map(argumentOf);
    const args = field.name === 'apiKey' ? '(name: "Key 7")' : given.length > 0 ? `(${given.join(', ')})` : '';
    const inner = isCompositeType(type)
      ? isObjectType(type)
        ? selectionOf(type, Math.ceil(copies / 4))
        : '{ __typename }'
      : '';
    return `${alias}${field.name}${args} ${inner}`;
  }

  function argumentOf({ name, type }: GraphQLArgument): string {
    if (name === 'first') return `first: ${pageSize}`;
    if (name === 'after') return 'after: null';
    if (name === 'url') return 'url: "https://h/a/b"';
    const named = getNamedType(type);
    const value = isEnumType(named)
      ? random.pick(named.getValues()).name
      : named.name === 'PermissionInput'
        ? '{ resource: DISK, actions: [READ_ANY] }'
        : JSON.stringify(random.pick(named.name === 'DateTime' ? times : TEXTS));
    return `${name}: ${isListType(getNullableType(type)) ? `[${value}]` : value}`;
  }
}
