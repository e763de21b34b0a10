import { BREAK, type DocumentNode, GraphQLError, visit } from 'graphql';
import { forbidden, type Principal, uses } from '../keys/authorization/principal.ts';

/** Whether the schema is told to all keys, to none, or to those with PERMISSION:READ_ANY. */
export type IntrospectionMode = 'on' | 'off' | 'permitted';

/** The fields that tell the schema. `__typename` tells only what the client has asked for. */
const FIELDS: ReadonlySet<string> = new Set(['__schema', '__type']);
/** What every document has that asks for one of them: names cannot be written otherwise. */
const POSSIBLY = /__(?:schema|type)(?!\w)/;

/** Whether a document asks for the schema anywhere, under whatever alias. */
export function introspects(document: DocumentNode): boolean {
  if (!POSSIBLY.test(document.loc?.source.body ?? '__schema')) return false;
  let found = false;
  visit(document, {
    Field: ({ name }) => {
      found ||= FIELDS.has(name.value);
      return found ? BREAK : undefined;
    },
  });
  return found;
}

/**
 * Refuses a request for the schema. Of a key that may make it, it counts as a use of the permission.
 * @throws GraphQLError INTROSPECTION_OFF; FORBIDDEN if the key lacks the permission
 */
export function checkIntrospection(mode: IntrospectionMode, principal: Principal): void {
  if (mode === 'on') return;
  if (mode === 'off') {
    const message = 'This server does not tell its schema: __schema and __type are switched off.';
    throw new GraphQLError(message, { extensions: { code: 'INTROSPECTION_OFF' } });
  }
  if (uses(principal, 'PERMISSION', 'READ_ANY')) return;
  const error = forbidden(principal, ['PERMISSION:READ_ANY'], 'to ask for the schema, ');
  throw new GraphQLError(error.message, { originalError: error });
}

/** Whether a key may get to know what is in the schema. */
export function mayKnowSchema(mode: IntrospectionMode, { access }: Principal): boolean {
  return mode === 'on' || (mode === 'permitted' && access.has('PERMISSION', 'READ_ANY'));
}

/** The text of an error without what it suggests in place of a wrong name, which is in the schema. */
export function withoutSuggestion(message: string): string {
  const start = message.indexOf(' Did you mean ');
  return start === -1 ? message : message.slice(0, start);
}
