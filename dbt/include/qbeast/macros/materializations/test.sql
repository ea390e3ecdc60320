{# dbt's own test, with a log line for each sample that it reads: a sampled test can prove a failure,
   never a pass. #}
{% materialization test, adapter='qbeast' %}
  {%- for note in adapter.qbeast_sample_notes(sql, model, graph) -%}
    {% do log(model.name ~ ' ' ~ note, info=true) %}
  {%- endfor -%}
  {{ return(materialization_test_default()) }}
{% endmaterialization %}
