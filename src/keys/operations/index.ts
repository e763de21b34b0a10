/** The operations on keys, each defined once. The CLI, GraphQL and the library are views of them. */
export {
  changing,
  isOnKeys,
  type KeysOperation,
  type Operation,
  type Operations,
  ofServer,
  operationsOn,
  perform,
  reading,
} from './operation.ts';
export { OPERATIONS } from './operations.ts';
export {
  type Client,
  type OperationsClient,
  type RemoteOperations,
  type Server,
  type ServerRequest,
} from './client.ts';
export { stateOf, statesOf, storeClient } from './store-client.ts';
