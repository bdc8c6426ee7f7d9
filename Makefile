.PHONY: control-plane
control-plane: ## etcd, kube-apiserver, kube-controller-manager and kubectl for the cluster tests
	@tests/control-plane/build
