import {
  defaultFieldResolver,
  type DocumentNode,
  getNamedType,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  Kind,
} from 'graphql';
import { tellable } from '../keys/time.ts';
import { DateTime } from './date-time.ts';

/**
 * Makes every time of the built-in part one that `DateTime` can tell: they come from rows, which may be damaged. What a
 * host's field answers is the host's, and an error if it is none.
 * @param own the built-in part
 */
export function tellOwnTimes(schema: GraphQLSchema, own: readonly DocumentNode[]): void {
  for (const definition of own.flatMap(({ definitions }) => definitions)) {
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION) continue;
    const fields = (schema.getType(definition.name.value) as GraphQLObjectType).getFields();
    for (const { name } of definition.fields ?? []) {
      const field = fields[name.value]!;
      if (getNamedType(field.type).name === DateTime.name) tell(field);
    }
  }
}

function tell(field: GraphQLField<unknown, unknown>): void {
  const resolve = field.resolve ?? defaultFieldResolver;
  const told = (value: unknown) => (typeof value === 'number' ? tellable(value) : value);
  field.resolve = (...args) => {
    const value: unknown = resolve(...args);
    return value instanceof Promise ? value.then(told) : told(value);
  };
}
