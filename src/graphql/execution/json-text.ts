import { GraphQLBoolean, GraphQLID, GraphQLInt, type GraphQLLeafType, GraphQLString } from 'graphql';

/**
 * Texts without what JSON escapes, and without surrogates, of which `JSON.stringify` escapes those that have no partner.
 */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** A text as JSON, as `JSON.stringify` writes it. */
function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** A serialized leaf value as JSON; undefined if `JSON.stringify` leaves it out, such as a function. */
export function writeLeaf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null';
    default:
      return JSON.stringify(value);
  }
}

/**
 * A value that a scalar of GraphQL itself writes as it is, as JSON; undefined for what has to be converted or refused.
 * @param scalar a type that `isSpecifiedScalarType` knows
 */
export function writeAsIs(scalar: GraphQLLeafType, value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return scalar === GraphQLString || scalar === GraphQLID ? quote(value) : undefined;
    case 'number':
      return scalar === GraphQLInt && (value | 0) === value ? String(value) : undefined;
    case 'boolean':
      return scalar === GraphQLBoolean ? String(value) : undefined;
    default:
      return undefined;
  }
}
