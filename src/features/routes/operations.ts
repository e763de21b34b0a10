import { ofServer } from '../../keys/operations/index.ts';

/** The operations on routes. A server answers them by its configuration. */
export const routeOperations = {
  routes: ofServer({ needs: 'CONFIG:READ_ANY', does: 'The routes of svc-api.yaml, in their order.' }),
  explainRequest: ofServer({
    needs: 'CONFIG:READ_ANY',
    does:
      'Explains which route decides about a request, why others do not, and what is required. Nothing is sent. With a key, ' +
      'also whether that is allowed; this requires API_KEY:READ_ANY, or READ_OWN for own keys. Does not check limits or ' +
      'the networks that a key can be used from.',
  }),
  routeKeys: ofServer({
    needs: 'CONFIG:READ_ANY',
    does:
      'Keys that can use a route and that the caller can read, in the order of apiKeys. A page checks at most 1000 keys, so ' +
      'it can have fewer than requested, or none, with more after it.',
  }),
};
