/** Everything that can be done with keys, once: the doors are views of it. */
export { type KeysOperation, type Operation, perform } from './operation.ts';
export { OPERATIONS, operationsOn } from './operations.ts';
export { type Client, takeBack } from './client.ts';
export { stateOf, storeClient } from './store-client.ts';
