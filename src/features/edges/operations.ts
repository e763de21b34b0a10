import { reading } from '../../keys/operations/index.ts';

/** The operations on edges, and how a server is asked for them. */
export const edgeOperations = {
  operations: {
    edges: reading({
      needs: 'EDGE:READ_ANY',
      does: 'The servers without a store that follow this one and have asked within 10 minutes, by their names.',
      run: (keys) => keys.edges.all(),
    }),
  },
  remote: () => import('./remote.ts'),
};
