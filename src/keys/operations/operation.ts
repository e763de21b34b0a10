import { type Actor, OPERATOR, requirePermission } from '../authorization/index.ts';
import { type Permission, splitPermission } from '../permissions/index.ts';
import type { KeysService } from '../service/index.ts';

/** An operation, for callers of any interface. */
export interface Operation {
  readonly root: 'Query' | 'Mutation';
  /** A description for the published schema. */
  readonly does: string;
  /** The permission that every caller needs; `run` can require more. */
  readonly needs: Permission;
}

/** An operation on keys. */
export interface KeysOperation<Input extends object, Answer> extends Operation {
  run(keys: KeysService, input: Input, actor: Actor): Answer;
}

/** Operations by their names, which are the root fields of the schema. */
export type Operations = Readonly<Record<string, Operation & Partial<KeysOperation<object, unknown>>>>;

type Defined<Made extends Operation> = Omit<Made, 'root'>;

/** An operation that changes nothing. */
export function reading<Input extends object, Answer>(
  operation: Defined<KeysOperation<Input, Answer>>,
): KeysOperation<Input, Answer> {
  return { ...operation, root: 'Query' };
}

/** An operation that changes something. */
export function changing<Input extends object, Answer>(
  operation: Defined<KeysOperation<Input, Answer>>,
): KeysOperation<Input, Answer> {
  return { ...operation, root: 'Mutation' };
}

/** An operation about the server or the request, which the server itself answers. */
export function ofServer(operation: Defined<Operation>): Operation {
  return { ...operation, root: 'Query' };
}

/** Operations by their names, each for an input and, unless that is known, an actor. */
export type Performed<Table, By extends [] | [actor: Actor] = [actor: Actor]> = {
  readonly [
    Name in keyof Table as Table[Name] extends KeysOperation<never, unknown> ? Name : never
  ]: Table[Name] extends KeysOperation<infer Input, infer Answer> ? (input: Input, ...by: By) => Answer : never;
};

/** The operations of a table on the keys of a service. */
export function operationsOn<Table extends Operations>(keys: KeysService, table: Table): Performed<Table> {
  const performed = Object.entries(table).flatMap(([name, operation]) =>
    isOnKeys(operation) ? [[name, (input: object, actor: Actor) => perform(operation, keys, input, actor)]] : [],
  );
  return Object.fromEntries(performed) as never;
}

/** True for an operation on keys; false for one that the server itself answers. */
export function isOnKeys(operation: Operations[string]): operation is KeysOperation<object, unknown> {
  return operation.run !== undefined;
}

/** Performs an operation if the actor has its permission. @throws ForbiddenError; the errors of its `run` */
export function perform<Input extends object, Answer>(
  operation: KeysOperation<Input, Answer>,
  keys: KeysService,
  input: Input,
  actor: Actor,
): Answer {
  const { needs } = operation;
  if (actor !== OPERATOR) requirePermission(actor, ...splitPermission(needs), needs);
  return operation.run(keys, input, actor);
}
