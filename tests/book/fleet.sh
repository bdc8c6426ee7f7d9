# What the guides take for granted: the fleet of fleet.yaml, ready, in the namespace that commands mean which name none.
source target/playground
mkdir -p overlays/prod
sed "s#https://platform.example/api/v2#$PLATFORM_URL#" tests/book/fleet.yaml >overlays/prod/fleet.yaml
echo 'resources: [fleet.yaml]' >overlays/prod/kustomization.yaml
cp overlays/prod/fleet.yaml extra.yaml
kubectl apply -k overlays/prod
kubectl config set-context --current --namespace=shop
# By their names: replicas that the page before asked for may be on their way out.
kubectl wait --timeout=2m --for=condition=Ready account/prod compute/orders compute/reports projectkey/ci readreplicaset/orders-read
# Of Argo CD, what its guide changes.
kubectl create namespace argocd --dry-run=client -o yaml | kubectl apply -f -
kubectl -n argocd create configmap argocd-cm --dry-run=client -o yaml | kubectl apply -f -
